/* The machine-independent part of the harness: reads runs, lays each one's buffers out between
 * guard bytes in dirty memory, calls it on a painted stack, and writes what happened. */
#include "harness.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "request and response files are little-endian structs"
#endif

void *memset(void *to, int value, size_t count);

enum { kGuard = 256, kDefaultIoAlignment = 8, kMaxDims = 32, kStackGap = 512 };
static const uint32_t kPaint = 0xC5D1E3B7u;

volatile uintptr_t harness_stack_base;
const char *volatile harness_running;

__attribute__((noinline)) void harness_count_begin(void) { __asm__ volatile(""); }
__attribute__((noinline)) void harness_count_end(void) { __asm__ volatile(""); }

/* --- memory ---------------------------------------------------------------------------------- */

/* A buffer with kGuard bytes of pattern on both sides. */
typedef struct {
  unsigned char *bytes;
  size_t count;
  uint32_t sum;  /* of an input, before the call */
  uint32_t null; /* the call gets a null pointer */
} Buffer;

static unsigned char guard_byte(const unsigned char *at) {
  return (unsigned char)(((uintptr_t)at * 167u + 29u) & 0xFFu);
}

static void fill_guards(const Buffer *buffer) {
  for (size_t i = 0; i < kGuard; i++) {
    unsigned char *before = buffer->bytes - kGuard + i, *after = buffer->bytes + buffer->count + i;
    *before = guard_byte(before);
    *after = guard_byte(after);
  }
}

static int guards_intact(const Buffer *buffer) {
  for (size_t i = 0; i < kGuard; i++) {
    const unsigned char *before = buffer->bytes - kGuard + i,
                        *after = buffer->bytes + buffer->count + i;
    if (*before != guard_byte(before) || *after != guard_byte(after)) return 0;
  }
  return 1;
}

/* FNV-1a. */
static uint32_t sum_bytes(const Buffer *buffer) {
  uint32_t sum = 2166136261u;
  for (size_t i = 0; i < buffer->count; i++) sum = (sum ^ buffer->bytes[i]) * 16777619u;
  return sum;
}

/* The bytes place() takes at most. */
static size_t room_for(size_t count, size_t alignment) {
  return count + 2 * alignment + 2 * (size_t)kGuard;
}

/* Puts a buffer at the next address that is a multiple of `alignment` but not of twice it: code
 * that relies on a better alignment than it asked for is then found out. */
static Buffer place(unsigned char **next, size_t count, size_t alignment) {
  uintptr_t at = (uintptr_t)*next + kGuard;
  at = (at + alignment - 1) & ~(uintptr_t)(alignment - 1);
  if ((at & alignment) == 0) at += alignment;
  Buffer buffer = {(unsigned char *)at, count, 0, 0};
  *next = buffer.bytes + count + kGuard;
  fill_guards(&buffer);
  return buffer;
}

/* --- stack ----------------------------------------------------------------------------------- */

static uintptr_t painted_low;

/* Fills everything below this frame; 256 bytes are left to it and its red zone. */
__attribute__((noinline)) static void paint_stack(void) {
  painted_low = (harness_stack_low() + 3u) & ~(uintptr_t)3;
  volatile uint32_t *low = (volatile uint32_t *)painted_low;
  volatile uint32_t *at = (volatile uint32_t *)((harness_stack_pointer() - 256) & ~(uintptr_t)3);
  while (at > low) *--at = kPaint;
}

/* Calls the case from a frame below what paint_stack and measure_stack themselves use. */
__attribute__((noinline)) static int32_t call_below(const harness_case *which,
                                                    const void *const *inputs, void *const *outputs,
                                                    const int64_t *dims, void *arena,
                                                    size_t arena_bytes) {
  volatile unsigned char gap[kStackGap];
  gap[0] = 0;
  __asm__ volatile("" : : "r"(gap)); /* else clang keeps the one byte that is used */
  harness_stack_base = harness_stack_pointer();
  int32_t status = which->run(inputs, outputs, dims, arena, arena_bytes);
  return status + gap[0];
}

__attribute__((noinline)) static uint64_t measure_stack(uint32_t *flags) {
  const volatile uint32_t *at = (const volatile uint32_t *)painted_low;
  if (*at != kPaint) *flags |= HARNESS_STACK_SHORT;
  while ((uintptr_t)at < harness_stack_base && *at == kPaint) at++;
  return (uint64_t)(harness_stack_base - (uintptr_t)at);
}

/* --- one run --------------------------------------------------------------------------------- */

typedef struct {
  harness_order order;
  const harness_case *which;
  int64_t dims[kMaxDims];
  Buffer *buffers; /* inputs, then outputs */
  const void **inputs;
  void **outputs;
  Buffer arena;
  unsigned char *arena_pointer; /* what the call gets */
} Run;

static size_t arena_alignment(const harness_case *which) {
  return which->arena_alignment ? which->arena_alignment : 1;
}

static size_t io_alignment(const harness_case *which) {
  return which->io_alignment ? which->io_alignment : kDefaultIoAlignment;
}

/* Reads the order and its dims, and says how much memory the run takes. */
static int read_order(Run *run, size_t *room) {
  harness_order *order = &run->order;
  if (harness_read(order, sizeof *order) != 0 || order->case_index >= harness_case_count) {
    return HARNESS_EXIT_IO;
  }
  const harness_case *which = run->which = &harness_cases[order->case_index];
  if (order->dim_count != which->dim_count || order->dim_count > kMaxDims ||
      order->input_count != which->input_count || order->arena_offset >= 4096 ||
      harness_read(run->dims, order->dim_count * sizeof run->dims[0]) != 0) {
    return HARNESS_EXIT_IO;
  }
  if (order->arena_bytes == HARNESS_CASE_ARENA) order->arena_bytes = which->arena_bytes;
  if (order->arena_bytes > SIZE_MAX / 2) return HARNESS_EXIT_MEMORY;
  size_t pointers = which->input_count + which->output_count;
  *room = 64 + pointers * (sizeof(Buffer) + sizeof(void *)) + order->arena_offset +
          room_for((size_t)order->arena_bytes, arena_alignment(which));
  for (size_t i = 0; i < which->input_count; i++) {
    *room += room_for(which->input_bytes[i], io_alignment(which));
  }
  for (size_t i = 0; i < which->output_count; i++) {
    *room += room_for(which->output_bytes[i], io_alignment(which));
  }
  return HARNESS_EXIT_OK;
}

static int read_inputs(Run *run, unsigned char **next) {
  const harness_case *which = run->which;
  for (size_t i = 0; i < which->input_count; i++) {
    uint64_t count;
    if (harness_read(&count, sizeof count) != 0) return HARNESS_EXIT_IO;
    int null = count == HARNESS_NULL;
    if (null) count = 0;
    if (count > which->input_bytes[i]) return HARNESS_EXIT_IO;
    Buffer *buffer = &run->buffers[i];
    *buffer = place(next, (size_t)count, io_alignment(which));
    if (harness_read(buffer->bytes, buffer->count) != 0) return HARNESS_EXIT_IO;
    buffer->sum = sum_bytes(buffer);
    run->inputs[i] = null ? 0 : buffer->bytes;
  }
  return HARNESS_EXIT_OK;
}

static void place_outputs_and_arena(Run *run, unsigned char **next) {
  const harness_case *which = run->which;
  int fill = (int)(run->order.fill & 0xFF);
  for (size_t i = 0; i < which->output_count; i++) {
    Buffer *buffer = &run->buffers[which->input_count + i];
    *buffer = place(next, which->output_bytes[i], io_alignment(which));
    memset(buffer->bytes, fill, buffer->count);
    buffer->null = i < 32 && (run->order.null_outputs >> i & 1u);
    run->outputs[i] = buffer->null ? 0 : buffer->bytes;
  }
  size_t arena_bytes = (size_t)run->order.arena_bytes;
  run->arena = place(next, arena_bytes, arena_alignment(which));
  if (run->order.arena_offset != 0) { /* move it: the guards follow */
    run->arena.bytes += run->order.arena_offset;
    fill_guards(&run->arena);
  }
  memset(run->arena.bytes, fill, arena_bytes);
  run->arena_pointer = arena_bytes == 0 ? 0 : run->arena.bytes;
}

static void inspect(const Run *run, harness_reply *reply) {
  const harness_case *which = run->which;
  for (size_t i = 0; i < which->input_count; i++) {
    const Buffer *buffer = &run->buffers[i];
    if (!guards_intact(buffer) || sum_bytes(buffer) != buffer->sum) {
      reply->flags |= HARNESS_INPUT_CHANGED;
    }
  }
  for (size_t i = 0; i < which->output_count; i++) {
    if (!guards_intact(&run->buffers[which->input_count + i])) {
      reply->flags |= HARNESS_OUTPUT_OVERRUN;
    }
  }
  if (!guards_intact(&run->arena)) reply->flags |= HARNESS_ARENA_OVERRUN;
  if (which->stack_bytes != 0 && reply->stack_bytes > which->stack_bytes) {
    reply->flags |= HARNESS_STACK_BOUND;
  }
  size_t used = run->arena.count;
  while (used > 0 && run->arena.bytes[used - 1] == (run->order.fill & 0xFF)) used--;
  reply->arena_used = used;
}

static int write_reply(const Run *run, const harness_reply *reply) {
  if (harness_write(reply, sizeof *reply) != 0) return HARNESS_EXIT_IO;
  for (size_t i = 0; i < run->which->output_count; i++) {
    const Buffer *buffer = &run->buffers[run->which->input_count + i];
    uint64_t count = buffer->null ? 0 : buffer->count;
    if (harness_write(&count, sizeof count) != 0 ||
        harness_write(buffer->bytes, (size_t)count) != 0) {
      return HARNESS_EXIT_IO;
    }
  }
  return HARNESS_EXIT_OK;
}

static int do_run(Run *run) {
  size_t room;
  int result = read_order(run, &room);
  if (result != HARNESS_EXIT_OK) return result;
  unsigned char *next = harness_region(room);
  if (next == 0) return HARNESS_EXIT_MEMORY;
  next += -(uintptr_t)next & 15u;
  const harness_case *which = run->which;
  size_t pointers = which->input_count + which->output_count;
  run->buffers = (Buffer *)(void *)next;
  run->inputs = (const void **)(void *)(run->buffers + pointers);
  run->outputs = (void **)(void *)(run->inputs + which->input_count);
  next = (unsigned char *)(run->outputs + which->output_count);
  result = read_inputs(run, &next);
  if (result != HARNESS_EXIT_OK) return result;
  place_outputs_and_arena(run, &next);

  harness_reply reply = {0, 0, 0, 0, (uint32_t)which->output_count, 0};
  harness_running = which->name;
  paint_stack();
  reply.status = call_below(which, run->inputs, run->outputs, run->dims, run->arena_pointer,
                            (size_t)run->order.arena_bytes);
  reply.stack_bytes = measure_stack(&reply.flags);
  harness_running = 0;
  inspect(run, &reply);
  return write_reply(run, &reply);
}

int harness_main(void) {
  static Run run;
  harness_request request;
  if (harness_read(&request, sizeof request) != 0 || request.magic != HARNESS_MAGIC ||
      request.version != HARNESS_VERSION) {
    harness_print("harness: this is no request file\n");
    return HARNESS_EXIT_IO;
  }
  for (uint32_t i = 0; i < request.run_count; i++) {
    int result = do_run(&run);
    if (result == HARNESS_EXIT_OK) continue;
    harness_print(result == HARNESS_EXIT_MEMORY ? "harness: too little memory for a run\n"
                                                : "harness: cannot read or write a run\n");
    return result;
  }
  return HARNESS_EXIT_OK;
}
