/* The loop of bench/host/fma_peak.c as a function. */
#define main fma_peak_program
#include "bench/host/fma_peak.c"
#undef main

/* Multiply-accumulates done in `rounds` rounds. */
long peak_macs(long rounds) {
  for (long i = 0; i < rounds; i++) run_round(0.5f);
  return rounds * kChains * kRepeats * kLanes;
}
