/* Runs compiled models on the machine they were compiled for, and looks over their shoulder.
 *
 * The driver generates a table of cases (one thunk per entry point of a library), links it with
 * this program and the library, and sends runs in a request file; the program answers each with
 * status, outputs and what the call did to the memory around it. Freestanding C11; files and memory
 * come from a platform layer (harness_io_*.c). README.md gives both file formats and every command.
 */
#ifndef BACKCAST_HARNESS_H
#define BACKCAST_HARNESS_H

#include <stddef.h>
#include <stdint.h>

/* Exit statuses of the program. */
#define HARNESS_EXIT_OK 0
#define HARNESS_EXIT_FAULT 70  /* the code under test trapped: bad access, bad instruction, … */
#define HARNESS_EXIT_IO 71     /* a file cannot be read or written, or the request is malformed */
#define HARNESS_EXIT_MEMORY 72 /* the machine has too little memory for a run */

/* Findings, in harness_reply.flags; 0 is a clean run. */
#define HARNESS_OUTPUT_OVERRUN 1u /* bytes around an output changed */
#define HARNESS_ARENA_OVERRUN 2u  /* bytes around the arena changed */
#define HARNESS_INPUT_CHANGED 4u  /* an input, or bytes around it, changed */
#define HARNESS_STACK_BOUND 8u    /* the call took more stack than its library promises */
#define HARNESS_STACK_SHORT 16u   /* it took all that was painted: stack_bytes is a lower bound */

typedef int32_t harness_run_function(const void *const *inputs, void *const *outputs,
                                     const int64_t *dims, void *arena, size_t arena_bytes);

/* One entry point of a library. Sizes are maxima over the dimensions' ranges. */
typedef struct harness_case {
  const char *name;
  harness_run_function *run;
  size_t arena_bytes;
  size_t arena_alignment; /* 0 means 1; buffers get exactly these powers of two, never a better */
  size_t io_alignment;    /* 0 means 8 */
  size_t stack_bytes;     /* the bound the library promises; 0: none */
  size_t dim_count;
  size_t input_count;
  const size_t *input_bytes;
  size_t output_count;
  const size_t *output_bytes;
} harness_case;

/* The driver's table. */
extern const harness_case harness_cases[];
extern const size_t harness_case_count;

/* A thunk wraps its one call into the library in HARNESS_CALL, so that stack and instruction counts
 * are the library's alone: HARNESS_CALL(status, kws_run(&in, &out, arena, arena_bytes, 0)). */
#define HARNESS_CALL(status, call)                \
  do {                                            \
    harness_stack_base = harness_stack_pointer(); \
    harness_count_begin();                        \
    (status) = (call);                            \
    harness_count_end();                          \
  } while (0)

/* Marks for bench/cortex-m's instruction counter; they do nothing. */
void harness_count_begin(void);
void harness_count_end(void);
extern volatile uintptr_t harness_stack_base;

static inline uintptr_t harness_stack_pointer(void) {
  uintptr_t pointer;
#if defined(__arm__) || defined(__aarch64__)
  __asm__ volatile("mov %0, sp" : "=r"(pointer));
#elif defined(__x86_64__)
  __asm__ volatile("mov %%rsp, %0" : "=r"(pointer));
#elif defined(__riscv)
  __asm__ volatile("mv %0, sp" : "=r"(pointer));
#elif defined(__wasm__)
  __asm__ volatile(
      ".globaltype __stack_pointer, i32\n"
      "global.get __stack_pointer\nlocal.set %0"
      : "=r"(pointer));
#else
  pointer = (uintptr_t)__builtin_frame_address(0);
#endif
  return pointer;
}

/* The request file: harness_request, then per run a harness_order, int64_t dims[dim_count], and per
 * input a uint64_t byte count and the bytes; a count of HARNESS_NULL makes the pointer null. */
#define HARNESS_MAGIC 0x51524342u /* "BCRQ" */
#define HARNESS_VERSION 1u
#define HARNESS_NULL UINT64_MAX
#define HARNESS_CASE_ARENA UINT64_MAX

typedef struct harness_request {
  uint32_t magic;
  uint32_t version;
  uint32_t run_count;
  uint32_t zero;
} harness_request;

typedef struct harness_order {
  uint32_t case_index;
  uint32_t dim_count;
  uint32_t input_count;
  uint32_t fill;         /* byte that arena and outputs hold before the call, such as 0xA5, 0xFF */
  uint64_t arena_bytes;  /* HARNESS_CASE_ARENA: as the case says; 0 makes the pointer null */
  uint32_t arena_offset; /* bytes past the alignment, to see it refused */
  uint32_t null_outputs; /* bit i: output i is null */
} harness_order;

/* The response file: per run a harness_reply, then per output a uint64_t byte count (its maximum; 0
 * if null) and the bytes. It holds the completed runs, also when a later one faults. */
typedef struct harness_reply {
  int32_t status;
  uint32_t flags;
  uint64_t stack_bytes; /* below the stack pointer at HARNESS_CALL */
  uint64_t arena_used;  /* bytes up to the last one that no longer holds `fill` */
  uint32_t output_count;
  uint32_t zero;
} harness_reply;

/* --- what a platform layer provides --------------------------------------------------------- */

/* Reads or writes exactly `count` bytes; 0 on success. */
int harness_read(void *bytes, size_t count);
int harness_write(const void *bytes, size_t count);
/* The same memory on every call, at least `bytes` long, or null. */
void *harness_region(size_t bytes);
/* Lowest address the stack may reach, or that is worth painting. */
uintptr_t harness_stack_low(void);
void harness_print(const char *text);

/* --- what it calls -------------------------------------------------------------------------- */

/* Carries out the request; a HARNESS_EXIT_* status. */
int harness_main(void);
/* Name of the case that is running, for the message of a fault; null outside of calls. */
extern const char *volatile harness_running;

#endif
