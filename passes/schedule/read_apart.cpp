#include "passes/schedule/read_apart.h"

#include <algorithm>
#include <map>
#include <string>

#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/side_buffers.h"

namespace backcast {

using loop::BufferParam;
using loop::Definition;
using loop::Expr;
using loop::ExprKind;

namespace {

/// Not a buffer whose storage a result may take over: every read of it has to be seen.
bool may_part(const std::string& buffer, const loop::Kernel& kernel) {
  return std::none_of(kernel.buffers.begin(), kernel.buffers.end(), [&](const BufferParam& param) {
    return std::find(param.over.begin(), param.over.end(), buffer) != param.over.end();
  });
}

}  // namespace

std::optional<ReadApart> read_apart(const Definition& definition, const loop::Kernel& kernel,
                                    const std::function<bool(const std::string&)>& is_constant) {
  std::map<std::string, std::vector<Expr>> places;  // where sums read each buffer
  for_each_access(definition, [&](const loop::ExprNode& read, bool in_sum) {
    if (!in_sum || is_constant(read.name) || !may_part(read.name, kernel)) return;
    const Expr flat = loop::flat_index(kernel.find(read.name)->shape, read.args);
    std::vector<Expr>& known = places[read.name];
    const auto is_same = [&](const Expr& other) { return loop::equal(other, flat); };
    if (std::none_of(known.begin(), known.end(), is_same)) known.push_back(flat);
  });
  // One beside another: windows that a sum unrolled read in more.
  std::erase_if(places, [](const auto& item) { return item.second.size() != 2; });
  if (places.empty()) return std::nullopt;
  ReadApart result{.definition = definition};
  loop::Kernel wider = kernel;
  for (const auto& [buffer, flats] : places) {
    BufferParam second = *kernel.find(buffer);
    second.name = SideBuffers::fresh_parameter(wider, buffer);
    transform(result.definition, [&](const Expr& e) -> Expr {
      if (e->kind != ExprKind::access || e->name != buffer) return e;
      if (!loop::equal(loop::flat_index(second.shape, e->args), flats[1])) return e;
      return loop::access(second.name, e.type().scalar, e->args);
    });
    wider.buffers.push_back(second);
    result.parameters.push_back(second);
    result.sources.push_back(buffer);
  }
  return result;
}

}  // namespace backcast
