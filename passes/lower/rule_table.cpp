#include "passes/lower/rule_table.h"

namespace backcast {

LowerRule find_lower_rule(const OpDef& op) {
  for (std::span<const LowerRow> rows : {elementwise_rules(), shape_rules(), indexing_rules(),
                                         contraction_rules(), reduction_rules()}) {
    for (const LowerRow& row : rows) {
      if (row.op == &op) return row.rule;
    }
  }
  return nullptr;
}

}  // namespace backcast
