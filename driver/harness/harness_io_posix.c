/* Platform layer for Linux, native or under qemu-user: files by name, memory from malloc, and a
 * handler on a stack of its own that turns a trap into HARNESS_EXIT_FAULT. */
#define _POSIX_C_SOURCE 200809L
#define _XOPEN_SOURCE 700
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

enum { kPaintedBytes = 1 << 20, kFaultStackBytes = 1 << 16 };

static FILE *request, *response;
static uintptr_t stack_low;

int harness_read(void *bytes, size_t count) {
  return fread(bytes, 1, count, request) == count ? 0 : -1;
}

int harness_write(const void *bytes, size_t count) {
  return fwrite(bytes, 1, count, response) == count ? 0 : -1;
}

void *harness_region(size_t bytes) {
  static void *region;
  static size_t region_bytes;
  if (bytes > region_bytes) {
    free(region);
    region = malloc(bytes);
    region_bytes = region ? bytes : 0;
  }
  return region;
}

uintptr_t harness_stack_low(void) { return stack_low; }

void harness_print(const char *text) {
  ssize_t ignored = write(STDERR_FILENO, text, strlen(text));
  (void)ignored;
}

static void on_fault(int number) {
  const char *name = harness_running;
  harness_print(number == SIGSEGV  ? "harness: SIGSEGV in "
                : number == SIGBUS ? "harness: SIGBUS in "
                : number == SIGFPE ? "harness: SIGFPE in "
                                   : "harness: SIGILL, SIGTRAP or SIGABRT in ");
  harness_print(name ? name : "the harness");
  harness_print("\n");
  _exit(HARNESS_EXIT_FAULT);
}

static void catch_faults(void) {
  static const int kNumbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
  static unsigned char fault_stack[kFaultStackBytes];
  stack_t stack;
  memset(&stack, 0, sizeof stack);
  stack.ss_sp = fault_stack;
  stack.ss_size = sizeof fault_stack;
  sigaltstack(&stack, NULL);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_fault;
  action.sa_flags = SA_ONSTACK;
  for (size_t i = 0; i < sizeof kNumbers / sizeof kNumbers[0]; i++) {
    sigaction(kNumbers[i], &action, NULL);
  }
}

int main(int argc, char **argv) {
  if (argc != 3 || !(request = fopen(argv[1], "rb")) || !(response = fopen(argv[2], "wb"))) {
    harness_print("usage: harness REQUEST RESPONSE\n");
    return HARNESS_EXIT_IO;
  }
  /* A fault ends the program at once: what was answered before must be in the file by then. */
  setvbuf(response, NULL, _IONBF, 0);
  stack_low = harness_stack_pointer() - kPaintedBytes;
  catch_faults();
  int result = harness_main();
  if (fclose(response) != 0 && result == HARNESS_EXIT_OK) result = HARNESS_EXIT_IO;
  return result;
}
