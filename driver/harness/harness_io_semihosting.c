/* Platform layer for a bare machine: files and command line through the debugger (here QEMU),
 * memory from the two pools the linker script leaves over. */
#include "harness.h"
#include "semihosting.h"

enum { kReadBinary = 1, kWriteBinary = 5, kCommandLineBytes = 1024 };

extern unsigned char __pool0_start[], __pool0_end[], __pool1_start[], __pool1_end[];
extern unsigned char __stack_low[];

static int32_t request = -1, response = -1;

int harness_read(void *bytes, size_t count) {
  uint32_t block[3] = {(uint32_t)request, (uint32_t)(uintptr_t)bytes, count};
  return count == 0 ? 0 : (int)semihost(kSysRead, block);
}

int harness_write(const void *bytes, size_t count) {
  uint32_t block[3] = {(uint32_t)response, (uint32_t)(uintptr_t)bytes, count};
  return count == 0 ? 0 : (int)semihost(kSysWrite, block);
}

void *harness_region(size_t bytes) {
  if (bytes <= (size_t)((uintptr_t)__pool0_end - (uintptr_t)__pool0_start)) return __pool0_start;
  if (bytes <= (size_t)((uintptr_t)__pool1_end - (uintptr_t)__pool1_start)) return __pool1_start;
  return 0;
}

uintptr_t harness_stack_low(void) { return (uintptr_t)__stack_low; }

void harness_print(const char *text) { semihost(kSysWrite0, text); }

static int32_t open_file(const char *name, uint32_t mode) {
  uint32_t length = 0;
  while (name[length] != 0) length++;
  uint32_t block[3] = {(uint32_t)(uintptr_t)name, mode, length};
  return semihost(kSysOpen, block);
}

/* The next word of a command line, ended by a zero. */
static char *next_word(char **rest) {
  char *at = *rest;
  while (*at == ' ') at++;
  char *word = at;
  while (*at != 0 && *at != ' ') at++;
  if (*at != 0) *at++ = 0;
  *rest = at;
  return word;
}

/* Called by the start-up code; the result is the exit status. */
int harness_start(void);
int harness_start(void) {
  static char line[kCommandLineBytes];
  uint32_t block[2] = {(uint32_t)(uintptr_t)line, sizeof line};
  if (semihost(kSysGetCommandLine, block) != 0) line[0] = 0;
  char *rest = line;
  next_word(&rest); /* the program's own name */
  const char *request_name = next_word(&rest);
  const char *response_name = next_word(&rest);
  if (*response_name != 0) {
    request = open_file(request_name, kReadBinary);
    response = open_file(response_name, kWriteBinary);
  }
  if (request < 0 || response < 0) {
    harness_print("usage: harness REQUEST RESPONSE\n");
    return HARNESS_EXIT_IO;
  }
  int result = harness_main();
  uint32_t handle[1] = {(uint32_t)response};
  if (semihost(kSysClose, handle) != 0 && result == HARNESS_EXIT_OK) result = HARNESS_EXIT_IO;
  return result;
}
