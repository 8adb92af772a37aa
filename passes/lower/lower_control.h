// Control flow → loops and branches of a program. The functions that scans and branches name are
// lowered in place, into the steps that a loop or branch holds; rows are views that move with the
// loop, so that kernels know nothing of loops.
#pragma once

#include <string>
#include <vector>

#include "ir/graph/module.h"
#include "ir/loop/program.h"
#include "passes/lower/rule.h"

namespace backcast {

/// What the lowering of functions offers to that of control flow.
class LoweringHost {
 public:
  using Buffers = std::vector<loop::BufferId>;
  virtual ~LoweringHost() = default;

  virtual const Module& module() const = 0;
  virtual loop::Program& program() = 0;
  virtual loop::BufferId add_buffer(const std::string& name, const TensorType& type,
                                    loop::BufferClass kind, const Loc& loc) = 0;
  /// The steps that are being appended to.
  virtual std::vector<loop::Step>& steps() = 0;
  /// Appends a call of a kernel.
  virtual void add_call(const Node& node, const KernelBuilder& builder, const Buffers& operands,
                        const Buffers& results) = 0;
  /// Lowers the nodes of a function into `steps`; gives the buffers of its result.
  virtual Buffers lower_body(const Function& function, const std::vector<Buffers>& arguments,
                             std::vector<loop::Step>& steps) = 0;
};

/// `node` is a scan of `function`; one buffer per operand. Gives those of the results.
LoweringHost::Buffers lower_scan(LoweringHost& host, const Function& function, const Node& node,
                                 const LoweringHost::Buffers& operands);
/// `node` is an if_else; operands may be tuples.
LoweringHost::Buffers lower_if_else(LoweringHost& host, const Node& node,
                                    const std::vector<LoweringHost::Buffers>& operands);

/// A copy of whole buffers.
loop::Step copy_step(loop::BufferId from, loop::BufferId to, const Loc& loc);

}  // namespace backcast
