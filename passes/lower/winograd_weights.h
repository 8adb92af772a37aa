// Weights of a layer computed by minimal filtering, transformed at compile time. Internal to the
// pass `winograd`.
#pragma once

#include <cstdint>

#include "ir/graph/literal.h"
#include "passes/lower/winograd_layer.h"

namespace backcast {

/// The operand's literal, by the axes of the definition.
class WinogradWeights {
 public:
  WinogradWeights(const WinogradConv& conv, const loop::Kernel& layer, Literal values);
  double at(int64_t feature, int64_t channel, int64_t row, int64_t column) const {
    return values_.as_double(origin_ + feature * feature_ + channel * channel_ + row * row_ +
                             column * column_);
  }

 private:
  Literal values_;
  int64_t origin_ = 0, feature_ = 0, channel_ = 0, row_ = 0, column_ = 0;
};

/// What transformed weights are multiplied by, so that those of integers are integers; products,
/// once they are transformed back, are multiples of it.
int weight_scale(const WinogradConv& conv);
/// Whether sums of bytes times these weights, scaled, fit in i32 at every stage.
bool sums_fit(const WinogradConv& conv, const WinogradWeights& weights);
/// Of one feature and channel, scaled: (m + 2)² values, row-major.
void transform_taps(const WinogradConv& conv, const WinogradWeights& weights, int m,
                    int64_t feature, int64_t channel, double* values);
/// [frequency, channel, feature], computed in double; of the spectrum's type and with as many
/// channels an element.
Literal transformed_weights(const WinogradConv& conv, const WinogradWeights& weights, int m);

}  // namespace backcast
