/* Platform layer for WebAssembly: harness.mjs, which runs the program under Node.js, supplies the
 * imported functions and calls harness_start. A trap ends the program there. */
#include <stddef.h>
#include <stdint.h>

#include "harness.h"

#define IMPORT(name) __attribute__((import_module("host"), import_name(name)))
#define EXPORT(name) __attribute__((export_name(name)))

enum { kPageBytes = 1 << 16 };

/* Bytes that were read or written. */
IMPORT("read") size_t host_read(void *bytes, size_t count);
IMPORT("write") size_t host_write(const void *bytes, size_t count);
IMPORT("print") void host_print(const char *text);

int harness_read(void *bytes, size_t count) { return host_read(bytes, count) == count ? 0 : -1; }

int harness_write(const void *bytes, size_t count) {
  return host_write(bytes, count) == count ? 0 : -1;
}

/* Memory grows at its end, so a larger region begins where the former one does. */
void *harness_region(size_t bytes) {
  static uintptr_t begin, end;
  if (begin == 0) begin = end = __builtin_wasm_memory_size(0) * kPageBytes;
  if (bytes > end - begin) {
    const size_t pages = (bytes - (end - begin) + kPageBytes - 1) / kPageBytes;
    if (__builtin_wasm_memory_grow(0, pages) == SIZE_MAX) return NULL;
    end += pages * kPageBytes;
  }
  return (void *)begin;
}

/* The stack lies first in memory (--stack-first): below it are no addresses. */
uintptr_t harness_stack_low(void) { return 16; }

void harness_print(const char *text) { host_print(text); }

EXPORT("running") const char *harness_running_name(void) { return harness_running; }
EXPORT("start") int harness_start(void) { return harness_main(); }
