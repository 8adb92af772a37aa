// A small training library as loop IR, for the tests of whatever handles state: y = x·w on rows of
// two values, squared error against integer labels, gradients accumulated over steps, momentum.
#pragma once

namespace backcast {

inline constexpr char kTrainingProgram[] = R"(program @net
training batch 4 accumulate 2
buffer %w : f32[2] state parameter {0.5, -0.25}
buffer %seen : f32[1] state statistic {0.125}
buffer %m : f32[2] state slot
buffer %g : f32[2] state gradient
buffer %count : i32[] state step
buffer %step : i32[] state step
buffer %rate : f32[] state rate {0.0625}
buffer %key : u32[2] state generator
buffer %scale : f32[2] constant {1, 2}
buffer %x : f32[1,2] input
buffer %y : f32[1] output
buffer %ex : f32[4,2] input
buffer %et : i32[4] input
buffer %el : f32[] output
buffer %ey : f32[4] output
buffer %ep : f32[4] arena
buffer %tx : f32[4,2] input
buffer %tt : i32[4] input
buffer %tl : f32[] output
buffer %ty : f32[4] output
buffer %tkey : u32[2] output
buffer %tp : f32[4] arena
buffer %td : f32[] arena
buffer %w1 : f32[1] state parameter view of %w at 1
kernel @predict(x: f32[M,2] read, w: f32[2] read, s: f32[2] read, y: f32[M] write) sizes(M) loc("fc", "Gemm") {
  for i in 0 .. M {
    store y[i] = load f32 x[i*2]*load f32 w[0]*load f32 s[0] + load f32 x[i*2 + 1]*load f32 w[1]*load f32 s[1]
  }
}
kernel @loss(p: f32[4] read, t: i32[4] read, l: f32[] write) {
  alloc sum : f32[1] registers
  store sum[0] = 0:f32
  for i in 0 .. 4 {
    let d = load f32 p[i] - cast f32 (load i32 t[i])
    store sum[0] = load f32 sum[0] + d*d
  }
  store l[0] = load f32 sum[0]*0.25:f32
}
kernel @gradient(p: f32[4] read, t: i32[4] read, x: f32[4,2] read, g: f32[2] update) {
  for i in 0 .. 4 {
    let d = (load f32 p[i] - cast f32 (load i32 t[i]))*0.5:f32
    for k in 0 .. 2 {
      store g[k] = load f32 g[k] + d*load f32 x[i*2 + k]
    }
  }
}
kernel @increment(n: i32[] update) {
  store n[0] = load i32 n[0] + 1:i32
}
kernel @forget(n: i32[] write) {
  store n[0] = 0:i32
}
kernel @observe(x: f32[4,2] read, s: f32[1] update) {
  store s[0] = load f32 s[0]*0.5:f32 + load f32 x[0]*0.5:f32
}
kernel @update(g: f32[2] update, n: i32[] read, r: f32[] read, m: f32[2] update, w: f32[2] update) {
  for k in 0 .. 2 {
    let mean = load f32 g[k]/cast f32 (load i32 n[0])
    let moment = load f32 m[k]*0.9:f32 + mean
    store m[k] = moment
    store w[k] = load f32 w[k] - load f32 r[0]*moment
    store g[k] = 0:f32
  }
}
kernel @halve(w: f32[1] update) {
  store w[0] = load f32 w[0]*0.5:f32
}
entry @run(%x) -> (%y) {
  call @predict(%x, %w, %scale, %y) sizes(1)
}
entry @evaluate(%ex, %et) -> (%el, %ey) range %et in 0..9 ignore -1 optional %ey {
  call @predict(%ex, %w, %scale, %ep) sizes(4)
  call @loss(%ep, %et, %el)
  copy %ep, %ey
}
entry @train_step(%tx, %tt) -> (%tl, %ty, %tkey) range %tt in 0..9 ignore -1 optional %ty optional %tkey {
  call @predict(%tx, %w, %scale, %tp) sizes(4)
  call @loss(%tp, %tt, %td)
  copy %td, %tl
  copy %tp, %ty
  copy %key, %tkey
  check_finite %td
  call @gradient(%tp, %tt, %tx, %g)
  call @observe(%tx, %seen)
  call @increment(%count)
}
entry @apply() -> () requires %count {
  call @update(%g, %count, %rate, %m, %w)
  call @halve(%w1)
  call @forget(%count)
  call @increment(%step)
}
)";

}  // namespace backcast
