// The table of core operators.
#include <map>

#include "ir/ops/ops.h"

namespace backcast {
namespace {

const OpDef* const kOps[] = {
#define BACKCAST_OP(name) &ops::name,
#include "ir/ops/ops.def"
#undef BACKCAST_OP
};

}  // namespace

std::span<const OpDef* const> all_ops() { return kOps; }

const OpDef* find_op(std::string_view name) {
  static const std::map<std::string_view, const OpDef*> table = [] {
    std::map<std::string_view, const OpDef*> result;
    for (const OpDef* op : kOps) result[op->name] = op;
    return result;
  }();
  auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace backcast
