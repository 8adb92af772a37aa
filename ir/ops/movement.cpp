// The strided copy behind broadcast, transpose, slice and reverse.
#include "ir/ops/movement.h"

#include "ir/ops/element_codec.h"
#include "ir/ops/walk.h"

namespace backcast::ops {

Literal strided_copy(const Literal& x, std::vector<int64_t> shape, int64_t start,
                     const std::vector<int64_t>& strides) {
  ResultBuffer result(x.element(), std::move(shape));
  Walk<1> walk(result.shape(), {strides});
  visit_word(x.element(), [&](auto word) {
    using Word = decltype(word);
    const Word* from = x.data<Word>();
    Word* to = result.data<Word>();
    walk.rows({start}, [&](const auto& at, const auto& steps, int64_t count) {
      const Word* source = from + at[0];
      for (int64_t i = 0; i < count; ++i) to[i] = source[i * steps[0]];
      to += count;
    });
  });
  return result.finish();
}

}  // namespace backcast::ops
