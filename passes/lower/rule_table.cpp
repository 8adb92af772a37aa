#include "passes/lower/rule_table.h"

namespace backcast {

LowerRule find_lower_rule(const OpDef& op) {
  for (std::span<const LowerRow> rows :
       {elementwise_lowering(), shape_lowering(), indexing_lowering(), contraction_lowering(),
        window_lowering(), solve_lowering(), reduction_lowering()}) {
    for (const LowerRow& row : rows) {
      if (row.op == &op) return row.rule;
    }
  }
  return nullptr;
}

}  // namespace backcast
