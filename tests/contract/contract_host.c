/* Runs every case of the table on this machine where a page fault answers a stray access: each
 * buffer once ends at and once starts after a page that may not be touched, inputs may only be
 * read. Then the same library twice at once, in two threads. Every run must give the same bits. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"

extern const int64_t contract_ranges[][8][2];

enum { kMost = 16, kRefused = 1000, kThreadRuns = 24, kThreadMilliseconds = 60, kPage = 4096 };
static const unsigned char kCanary = 0x5B;
static const char *volatile doing = "nothing";
static const char *volatile which_case = "";
static int faults;

static void fault(const char *what) {
  printf("%s: %s: %s\n", which_case, doing, what);
  faults++;
}

static void on_signal(int number) {
  static const char text[] = ": an access outside of its buffers, while ";
  const char *name = which_case, *phase = doing;
  ssize_t ignored = write(1, name, strlen(name));
  ignored += write(1, text, sizeof text - 1);
  ignored += write(1, phase, strlen(phase));
  ignored += write(1, "\n", 1);
  (void)ignored;
  _exit(100 + number);
}

/* --- one set of buffers ----------------------------------------------------------------------- */

typedef struct {
  unsigned char *map;
  size_t map_bytes;
  unsigned char *bytes; /* of the buffer */
  size_t count;
} Area;

static size_t pages(size_t count) { return (count + kPage - 1) / kPage * kPage; }

/* A buffer between two forbidden pages, at the end of what lies between or (at_start) at its start;
 * the bytes that alignment leaves over hold a canary. */
static Area make_area(size_t count, size_t alignment, int at_start) {
  size_t room = pages(count + alignment) + (count == 0 ? kPage : 0);
  Area area = {0, room + 2 * kPage, 0, count};
  area.map = mmap(0, area.map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (area.map == MAP_FAILED) {
    perror("mmap");
    exit(2);
  }
  memset(area.map, kCanary, area.map_bytes);
  mprotect(area.map, kPage, PROT_NONE);
  mprotect(area.map + kPage + room, kPage, PROT_NONE);
  uintptr_t end = (uintptr_t)area.map + kPage + room;
  uintptr_t at =
      at_start ? (uintptr_t)area.map + kPage : (end - count) & ~(uintptr_t)(alignment - 1);
  area.bytes = (unsigned char *)at;
  return area;
}

static int canaries_intact(const Area *area) {
  for (unsigned char *at = area->map + kPage; at < area->map + area->map_bytes - kPage; at++) {
    if (at >= area->bytes && at < area->bytes + area->count) continue;
    if (*at != kCanary) return 0;
  }
  return 1;
}

typedef struct {
  const harness_case *which;
  int64_t dims[8];
  Area inputs[kMost], outputs[kMost], arena;
  const void *in[kMost + 1];
  void *out[kMost + 1];
} Instance;

/* Values in [-1, 1), the same for the same seed. */
static void fill_values(Area *area, unsigned seed) {
  uint32_t state = seed * 2654435761u + 12345u;
  for (size_t i = 0; i + sizeof(float) <= area->count; i += sizeof(float)) {
    state = state * 1664525u + 1013904223u;
    float value = (float)(int32_t)state / 2147483648.0f;
    memcpy(area->bytes + i, &value, sizeof value);
  }
}

static void make_instance(Instance *it, const harness_case *which, const int64_t *dims,
                          unsigned seed, int at_start, int fill) {
  it->which = which;
  memcpy(it->dims, dims, sizeof it->dims);
  for (size_t k = 0; k < which->input_count; k++) {
    it->inputs[k] = make_area(which->input_bytes[k], which->io_alignment, at_start);
    fill_values(&it->inputs[k], seed + (unsigned)k * 77u);
    mprotect(it->inputs[k].map + kPage, it->inputs[k].map_bytes - 2 * kPage, PROT_READ);
    it->in[k] = it->inputs[k].bytes;
  }
  for (size_t k = 0; k < which->output_count; k++) {
    it->outputs[k] = make_area(which->output_bytes[k], which->io_alignment, at_start);
    memset(it->outputs[k].bytes, fill, it->outputs[k].count);
    it->out[k] = it->outputs[k].bytes;
  }
  size_t alignment = which->arena_alignment ? which->arena_alignment : 1;
  it->arena = make_area(which->arena_bytes, alignment, at_start);
  memset(it->arena.bytes, fill, it->arena.count);
}

static int32_t call(Instance *it) {
  return it->which->run(it->in, it->out, it->dims, it->arena.bytes, it->arena.count);
}

static void inspect(const Instance *it) {
  for (size_t k = 0; k < it->which->input_count; k++) {
    if (!canaries_intact(&it->inputs[k])) fault("wrote beside an input");
  }
  for (size_t k = 0; k < it->which->output_count; k++) {
    if (!canaries_intact(&it->outputs[k])) fault("wrote beside an output");
  }
  if (!canaries_intact(&it->arena)) fault("wrote beside the arena");
}

/* Bytes written the same in both; bytes that neither wrote hold the fill of each. */
static int same_outputs(const Instance *a, int fill_a, const Instance *b, int fill_b) {
  for (size_t k = 0; k < a->which->output_count; k++) {
    for (size_t i = 0; i < a->outputs[k].count; i++) {
      unsigned char x = a->outputs[k].bytes[i], y = b->outputs[k].bytes[i];
      if (x != y && !(x == (unsigned char)fill_a && y == (unsigned char)fill_b)) return 0;
    }
  }
  return 1;
}

static void drop_instance(Instance *it) {
  for (size_t k = 0; k < it->which->input_count; k++)
    munmap(it->inputs[k].map, it->inputs[k].map_bytes);
  for (size_t k = 0; k < it->which->output_count; k++) {
    munmap(it->outputs[k].map, it->outputs[k].map_bytes);
  }
  munmap(it->arena.map, it->arena.map_bytes);
}

/* --- the checks ------------------------------------------------------------------------------- */

static void check_good(const harness_case *which, const int64_t *dims) {
  Instance first, again;
  doing = "running with buffers that end at a forbidden page";
  make_instance(&first, which, dims, 1, 0, 0xA5);
  if (call(&first) != 0) fault("the status is not BC_OK");
  inspect(&first);
  doing = "running with buffers that start after a forbidden page, on other memory contents";
  make_instance(&again, which, dims, 1, 1, 0xFF);
  if (call(&again) != 0) fault("the status is not BC_OK");
  inspect(&again);
  if (!same_outputs(&first, 0xA5, &again, 0xFF)) fault("what memory held before changes outputs");
  doing = "running again on the arena as the last call left it";
  if (call(&again) != 0 || !same_outputs(&first, 0xA5, &again, 0xFF)) fault("other outputs");
  drop_instance(&again);
  doing = "running with other inputs";
  make_instance(&again, which, dims, 2, 1, 0xFF);
  if (call(&again) != 0) fault("the status is not BC_OK");
  int differs = which->input_count == 0;
  for (size_t k = 0; k < which->output_count; k++) {
    differs |= memcmp(first.outputs[k].bytes, again.outputs[k].bytes, again.outputs[k].count) != 0;
  }
  if (!differs) fault("outputs do not depend on inputs");
  drop_instance(&again);
  drop_instance(&first);
}

static void check_refusals(const harness_case *which, const int64_t *dims) {
  Instance it;
  doing = "refusing bad calls";
  make_instance(&it, which, dims, 1, 0, 0xA5);
  int32_t answer = call(&it);
  if (answer != kRefused) {
    char text[80];
    snprintf(text, sizeof text, "call number %d got the wrong status", (int)answer);
    fault(text);
  }
  inspect(&it);
  for (size_t k = 0; k < which->output_count; k++) {
    for (size_t i = 0; i < it.outputs[k].count; i++) {
      if (it.outputs[k].bytes[i] != 0xA5) {
        fault("a refused call wrote an output");
        break;
      }
    }
  }
  drop_instance(&it);
}

typedef struct {
  Instance instance, alone;
  pthread_barrier_t *start;
  int number, wrong;
} Worker;

static atomic_int runs_of[2];

static int64_t milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Calls again and again until both threads have done enough, so that calls do overlap. */
static void *work(void *argument) {
  Worker *worker = argument;
  pthread_barrier_wait(worker->start);
  const int64_t end = milliseconds() + kThreadMilliseconds;
  while (runs_of[0] < kThreadRuns || runs_of[1] < kThreadRuns || milliseconds() < end) {
    if (call(&worker->instance) != 0) worker->wrong++;
    if (!same_outputs(&worker->instance, 0xA5, &worker->alone, 0xA5)) worker->wrong++;
    runs_of[worker->number]++;
  }
  return 0;
}

static void check_threads(const harness_case *which, const int64_t *dims) {
  static Worker workers[2];
  pthread_t threads[2];
  pthread_barrier_t start;
  doing = "running two instances in two threads";
  pthread_barrier_init(&start, 0, 2);
  for (unsigned k = 0; k < 2; k++) {
    make_instance(&workers[k].instance, which, dims, 10 + k, 0, 0xA5);
    make_instance(&workers[k].alone, which, dims, 10 + k, 0, 0xA5);
    if (call(&workers[k].alone) != 0) fault("the status is not BC_OK");
    workers[k].start = &start;
    workers[k].wrong = 0;
    workers[k].number = (int)k;
    runs_of[k] = 0;
  }
  for (int k = 0; k < 2; k++) pthread_create(&threads[k], 0, work, &workers[k]);
  for (int k = 0; k < 2; k++) {
    pthread_join(threads[k], 0);
    if (workers[k].wrong) fault("outputs differ from those of the instance alone");
    inspect(&workers[k].instance);
    drop_instance(&workers[k].instance);
    drop_instance(&workers[k].alone);
  }
  pthread_barrier_destroy(&start);
}

int main(void) {
  setvbuf(stdout, 0, _IONBF, 0);
  signal(SIGSEGV, on_signal);
  signal(SIGBUS, on_signal);
  for (size_t c = 0; c < harness_case_count; c++) {
    const harness_case *which = &harness_cases[c];
    which_case = which->name;
    int refusals = c % 2 == 1;
    for (int bound = 0; bound < (which->dim_count ? 2 : 1); bound++) {
      int64_t dims[8] = {0};
      for (size_t k = 0; k < which->dim_count; k++) dims[k] = contract_ranges[c][k][1 - bound];
      if (refusals) {
        check_refusals(which, dims);
      } else {
        check_good(which, dims);
        check_threads(which, dims);
      }
    }
  }
  printf("%zu cases, %d faults\n", harness_case_count, faults);
  return faults ? 1 : 0;
}
