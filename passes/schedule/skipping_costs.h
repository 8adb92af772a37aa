// What a sum takes that leaves out factors of zero, beside one that takes every step.
#pragma once

#include "ir/target/target_info.h"
#include "passes/schedule/nest.h"
#include "passes/schedule/nonzero_rows.h"

namespace backcast {

/// Of the words that hold a row's bits: the largest type that is no wider than an address, or the
/// smallest one for all bits; across rows, as wide as the elements, which share vectors with it.
loop::Scalar mask_word(const NonzeroRows& rows, int element_bytes, const TargetInfo& target);

/// Words that are gone through as one: the end of each is a branch that nobody can predict.
int64_t joined_words(const NonzeroRows& rows, int element_bytes, const TargetInfo& target);

class SkippingCosts {
 public:
  /// `program_bytes`: of all constants of the program, which displace one another from caches;
  /// `sharing`: results beside one another that share a block's weights. What is passed by
  /// reference must outlive it.
  SkippingCosts(const TargetInfo& target, int64_t program_bytes, const NonzeroRows& rows,
                const loop::Definition& definition, const NestSchedule& schedule, int64_t sharing)
      : target_(target),
        program_bytes_(program_bytes),
        rows_(rows),
        definition_(definition),
        schedule_(schedule),
        sharing_(sharing) {}

  /// Cycles when half of the steps are taken. `marked`: elements of the factor that are compared;
  /// `rearranging`: cycles by the model of schedules, in which operands are rearranged before.
  double skipping(double marked, double rearranging) const;
  /// Cycles when all are, under a schedule that takes `cycles` by its arithmetic.
  double taking_all(double cycles) const;

  int64_t steps() const;
  /// Sums beside those along the vectors; 0: run time tells, or there are none.
  int64_t results() const;
  int element_bytes() const;
  /// Bytes of the weights that the widest vectors read in so many steps.
  int64_t weight_bytes(int64_t steps) const;
  /// Whether the first cache holds all weights.
  bool holds_all() const;
  /// Beyond so many bytes, constants come from memory: what a third cache holds for sure.
  static int64_t held(const TargetInfo& target) { return 16 * target.l2_bytes; }
  /// Whole registers that are multiplied and added in a cycle.
  static double units(const TargetInfo& target) {
    return target.fma_units / (target.halves_vectors ? 2.0 : 1.0);
  }

 private:
  double arriving(const VectorSegment& segment, int64_t sharing) const;
  double fetching() const;
  double scalar_cycles(double part, double each, double marking) const;

  const TargetInfo& target_;
  int64_t program_bytes_;
  const NonzeroRows& rows_;
  const loop::Definition& definition_;
  const NestSchedule& schedule_;
  int64_t sharing_;
};

}  // namespace backcast
