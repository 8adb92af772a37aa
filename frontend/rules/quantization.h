// What the rules of quantised operators share. Products of quantised operands are exact in i32.
#pragma once

#include "frontend/node_context.h"

namespace backcast {

/// Input i, which may scale quantised numbers: an initializer there is not trained, and noted
/// where it is zero or no finite number.
ValueId scale_input(NodeContext& n, size_t i);
/// Says that the node rounds what it gets, so that nothing learns through it.
void note_rounding(NodeContext& n);

/// x, which holds whole numbers, limited to what `to` can hold.
ValueId saturate(Emitter& e, ValueId x, ElementType to);
/// CompileError unless `to` is an integer of 8 or 16 bits.
void check_quantised(const NodeContext& n, ElementType to);

/// Input `operand` less its zero point, as i32; an absent zero point is 0. A vector of zero points
/// runs along `axis`.
ValueId centred(NodeContext& n, size_t operand, size_t zero_point, int64_t axis);
/// An exact product in i32, scaled to the quantised output. `scale` is broadcast to the product.
ValueId requantise(NodeContext& n, ValueId product, ValueId scale, size_t y_scale,
                   size_t y_zero_point);
/// An input that scales rows (of a) or columns (of b), to be multiplied with the product a·b.
ValueId matmul_scale(NodeContext& n, size_t input, bool rows);

/// Each element of x `block` times along an axis, of which the first `extent` are kept.
ValueId repeat_blocks(Emitter& e, ValueId x, int64_t axis, int64_t block, const Dim& extent);

/// x in u8 with one scale and one zero point that hold its whole range and 0.
struct DynamicallyQuantised {
  ValueId y, scale, zero;  // zero is a whole number of x's type
};
/// In training nothing learns through it: the exact derivative, which is that of the scale alone,
/// leads nowhere.
DynamicallyQuantised quantise_dynamically(Emitter& e, ValueId x, bool training);
/// x·wᵀ where x[…, k] is quantised on the spot and w[rows, k] is quantised already. `scale` and
/// `zero` of w are scalars or have an element per row.
ValueId dynamic_product(Emitter& e, ValueId x, ValueId w, ValueId scale, ValueId zero,
                        bool training);
/// Whether the node is imported to be trained.
bool is_training(NodeContext& n);

}  // namespace backcast
