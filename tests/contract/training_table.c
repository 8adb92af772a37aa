/* The harness' cases of a training library `net` (one f32 input of IMAGE_ELEMENTS, i32 labels
 * `target` of CLASSES): a training that answers losses and parameters, and calls that must be
 * refused. */
#include "harness.h"
#include "net.h"

enum { kSteps = 4, kRefused = 1000, kOk = 0 };

static _Alignas(NET_STATE_ALIGN) unsigned char state[NET_STATE_BYTES + NET_STATE_ALIGN];
static _Alignas(NET_STATE_ALIGN) unsigned char other[NET_STATE_BYTES];
static unsigned char saved[NET_STATE_BYTES + 4096];
static size_t saved_bytes, read_bytes;

static void copy(unsigned char *to, const unsigned char *from, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] = from[i];
}

static int same(const unsigned char *a, const unsigned char *b, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (a[i] != b[i]) return 0;
  }
  return 1;
}

static bc_status write_bytes(void *user, const void *bytes, size_t count) {
  (void)user;
  if (count > sizeof saved - saved_bytes) return BC_ERROR_IO;
  copy(saved + saved_bytes, bytes, count);
  saved_bytes += count;
  return BC_OK;
}

static bc_status read_saved(void *user, void *bytes, size_t count) {
  (void)user;
  if (count > saved_bytes - read_bytes) return BC_ERROR_IO;
  copy(bytes, saved + read_bytes, count);
  read_bytes += count;
  return BC_OK;
}

static bc_status update(void *at, void *arena, size_t bytes) {
#ifdef NET_ACCUMULATE
  return net_apply(at, arena, bytes, 0);
#else
  (void)at, (void)arena, (void)bytes;
  return BC_OK;
#endif
}

/* Outputs: a loss per step, then all parameters. Half way the state goes through a checkpoint. */
static int32_t train(const void *const *i, void *const *o, const int64_t *d, void *arena,
                     size_t bytes) {
  const bc_writer writer = {0, write_bytes};
  const bc_reader reader = {0, read_saved};
  unsigned char *at = state;
  (void)d;
  bc_status status = net_init(at, NET_STATE_BYTES, 7);
  if (status == BC_OK) status = net_set_learning_rate(at, 0.05f);
  for (int step = 0; step < kSteps && status == BC_OK; step++) {
    const net_train_step_inputs in = {i[0], i[1]};
    const net_train_step_outputs out = {(float *)o[0] + step, 0};
    HARNESS_CALL(status, net_train_step(at, &in, &out, arena, bytes, 0));
    if (status == BC_OK) status = update(at, arena, bytes);
    if (status != BC_OK || step != kSteps / 2) continue;
    saved_bytes = read_bytes = 0;
    status = net_save(at, &writer);
    if (status == BC_OK) status = net_load(other, &reader);
    at = other;
  }
  return status == BC_OK ? net_get_parameters(at, o[1]) : status;
}

/* Calls that must leave a valid state as it is, each answered with its status. */
static int32_t refuse(const void *const *i, void *const *o, const int64_t *d, void *arena,
                      size_t bytes) {
  static float image[IMAGE_ELEMENTS];
  static int32_t target[NET_TRAIN_STEP_IN_TARGET_ELEMENTS];
  static float loss;
  const net_train_step_inputs in = {image, target};
  const net_train_step_outputs out = {&loss, 0};
  int32_t number = 100;
  (void)i, (void)o, (void)d;
#define REFUSED(call, status)                                              \
  do {                                                                     \
    number++;                                                              \
    if ((call) != (status) || !same(state, other, NET_STATE_BYTES)) return number; \
  } while (0)
  if (net_init(state, NET_STATE_BYTES, 1) != BC_OK) return 99;
  copy(other, state, NET_STATE_BYTES);
  REFUSED(net_init(0, NET_STATE_BYTES, 1), BC_ERROR_NULL);
  REFUSED(net_init(state, NET_STATE_BYTES - 1, 1), BC_ERROR_STATE_SIZE);
  REFUSED(net_init(state + NET_STATE_ALIGN / 2, NET_STATE_BYTES, 1), BC_ERROR_ALIGNMENT);
  REFUSED(net_train_step(0, &in, &out, arena, bytes, 0), BC_ERROR_NULL);
  REFUSED(net_train_step(state, 0, &out, arena, bytes, 0), BC_ERROR_NULL);
  REFUSED(net_train_step(state, &in, 0, arena, bytes, 0), BC_ERROR_NULL);
  REFUSED(net_train_step(state, &in, &out, 0, bytes, 0), BC_ERROR_NULL);
  REFUSED(net_train_step(state, &in, &out, arena, bytes - 1, 0), BC_ERROR_ARENA_SIZE);
  REFUSED(net_train_step(state + NET_STATE_ALIGN / 2, &in, &out, arena, bytes, 0),
          BC_ERROR_ALIGNMENT);
  target[0] = CLASSES;
  REFUSED(net_train_step(state, &in, &out, arena, bytes, 0), BC_ERROR_INDEX);
  target[0] = -1;
  REFUSED(net_train_step(state, &in, &out, arena, bytes, 0), BC_ERROR_INDEX);
  target[0] = 0;
  image[5] = 1e30f * 1e30f;
  REFUSED(net_train_step(state, &in, &out, arena, bytes, 0), BC_ERROR_NONFINITE);
  image[5] = image[5] - image[5];
  REFUSED(net_train_step(state, &in, &out, arena, bytes, 0), BC_ERROR_NONFINITE);
  image[5] = 0;
  REFUSED(net_set_learning_rate(state, -1), BC_ERROR_VALUE);
  REFUSED(net_get_parameters(state, 0), BC_ERROR_NULL);
  REFUSED(net_set_parameters(state, 0), BC_ERROR_NULL);
  REFUSED(net_save(state, 0), BC_ERROR_NULL);
#ifdef NET_ACCUMULATE
  REFUSED(net_apply(state, arena, bytes, 0), BC_ERROR_STATE);
#endif
  state[0] ^= 1; /* no state of this library */
  other[0] ^= 1;
  REFUSED(net_train_step(state, &in, &out, arena, bytes, 0), BC_ERROR_STATE);
  REFUSED(net_set_learning_rate(state, 1), BC_ERROR_STATE);
  return kRefused;
}

static const size_t inputs[] = {sizeof(float) * IMAGE_ELEMENTS,
                                sizeof(int32_t) * NET_TRAIN_STEP_IN_TARGET_ELEMENTS};
static const size_t outputs[] = {sizeof(float) * kSteps, sizeof(float) * NET_PARAMETER_COUNT};
const harness_case harness_cases[] = {
    {"train", train, NET_ARENA_BYTES, NET_ARENA_ALIGN, 8, NET_STACK_BYTES, 0, 2, inputs, 2,
     outputs},
    {"refuse", refuse, NET_ARENA_BYTES, NET_ARENA_ALIGN, 8, 0, 0, 2, inputs, 2, outputs}};
const size_t harness_case_count = 2;
