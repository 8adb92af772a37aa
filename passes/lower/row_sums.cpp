// See row_sums.h.
#include "passes/lower/row_sums.h"

#include <fmt/format.h>

#include <map>
#include <string>

#include "ir/loop/add.h"
#include "ir/loop/combine.h"
#include "ir/loop/step_access.h"
#include "ir/loop/visit.h"
#include "passes/schedule/affine.h"

namespace backcast {
namespace {

using loop::Accumulator;
using loop::Axis;
using loop::Buffer;
using loop::BufferId;
using loop::BufferParam;
using loop::Definition;
using loop::Expr;
using loop::Kernel;
using loop::Program;
using loop::Step;

/// A sum per accumulator and point of the axes.
Dims shape_of(const Definition& definition) {
  Dims shape;
  for (const Axis& axis : definition.axes) shape.push_back(Dim(*static_extent(axis)));
  return shape;
}

class Splitting {
 public:
  Splitting(Program& program, const Step& call)
      : program_(program),
        call_(call),
        kernel_(program.kernels.at(call.kernel)),
        definition_(*loop::only_definition(kernel_)),
        shape_(shape_of(definition_)) {
    for (const Axis& axis : definition_.axes) point_.push_back(loop::var(axis.name));
    for (size_t i = 0; i < definition_.accumulators.size(); ++i) {
      so_far_.push_back(fresh(fmt::format("sum{}", i)));
      sums_.push_back(fresh(fmt::format("more{}", i)));
      buffers_.push_back(add_sum(definition_.accumulators[i]));
    }
  }

  RowSums run() {
    RowSums result;
    result.begin = added(begin(), "_begin");
    result.finish = added(finish(), "_finish");
    result.trip = trip();
    result.buffers = buffers_of(result.trip);
    return result;
  }

 private:
  Kernel begin() const {
    Kernel result = like("_begin");
    result.macs = 0;
    Definition definition{definition_.axes, {}, {}, {}};
    for (size_t i = 0; i < sums_.size(); ++i) {
      result.buffers.push_back(param(sums_[i], i, loop::AccessMode::write));
      definition.outputs.push_back({sums_[i], point_, definition_.accumulators[i].init});
    }
    result.body = loop::define(std::move(definition));
    return result;
  }

  Kernel trip() const {
    Kernel result = like("");
    Definition definition = definition_;
    definition.outputs.clear();
    for (const BufferParam& old : kernel_.buffers) {
      if (old.mode == loop::AccessMode::read) result.buffers.push_back(old);
    }
    for (size_t i = 0; i < sums_.size(); ++i) {
      const Accumulator& acc = definition_.accumulators[i];
      result.buffers.push_back(param(so_far_[i], i, loop::AccessMode::read));
      result.buffers.push_back(param(sums_[i], i, loop::AccessMode::write));
      result.buffers.back().over = {so_far_[i]};
      const Expr value =
          loop::combined(acc.combine, loop::access(so_far_[i], acc.type.scalar, point_),
                         loop::var(acc.name, acc.type));
      definition.outputs.push_back({sums_[i], point_, value});
    }
    result.body = loop::define(std::move(definition));
    return used(std::move(result));
  }

  Kernel finish() const {
    Kernel result = like("_finish");
    result.macs = 0;
    result.buffers = kernel_.buffers;
    std::map<std::string, Expr> sums;
    for (size_t i = 0; i < sums_.size(); ++i) {
      const Accumulator& acc = definition_.accumulators[i];
      result.buffers.push_back(param(so_far_[i], i, loop::AccessMode::read));
      sums[acc.name] = loop::access(so_far_[i], acc.type.scalar, point_);
    }
    Definition definition{definition_.axes, {}, {}, definition_.outputs};
    for (loop::DefinitionOutput& output : definition.outputs) {
      output.value = loop::substitute(output.value, sums);
    }
    result.body = loop::define(std::move(definition));
    return used(std::move(result));
  }

  Kernel like(const std::string& ending) const {
    Kernel result;
    result.name = kernel_.name + ending;
    result.locs = kernel_.locs;
    result.macs = kernel_.macs;
    return result;
  }

  BufferParam param(const std::string& name, size_t i, loop::AccessMode mode) const {
    return {name, definition_.accumulators[i].type.scalar, shape_, mode, {}};
  }

  /// Without the parameters that its body does not mention.
  static Kernel used(Kernel kernel) {
    Step call;
    call.buffers.assign(kernel.buffers.size(), -1);
    loop::drop_unread(kernel, call);
    return kernel;
  }

  std::vector<BufferId> buffers_of(const Kernel& part) {
    std::vector<BufferId> result;
    for (const BufferParam& p : part.buffers) {
      BufferId id = loop::buffer_of(kernel_, call_, p.name);
      for (size_t i = 0; i < sums_.size(); ++i) {
        if (p.name == so_far_[i] || p.name == sums_[i]) id = buffers_[i];
      }
      result.push_back(id);
    }
    return result;
  }

  Step added(Kernel part, const std::string& ending) {
    Step step = call_;
    step.buffers = buffers_of(part);
    step.kernel = loop::add_kernel(program_, call_.kernel + ending, std::move(part));
    return step;
  }

  BufferId add_sum(const Accumulator& acc) {
    Buffer buffer;
    buffer.element = loop::element_of(acc.type.scalar);
    buffer.shape = shape_;
    buffer.loc = call_.loc;
    return loop::add_buffer(program_, call_.kernel + "_sum", std::move(buffer));
  }

  std::string fresh(std::string name) const {
    while (kernel_.find(name) != nullptr) name += "_";
    return name;
  }

  Program& program_;
  const Step call_;
  const Kernel kernel_;
  const Definition definition_;
  const Dims shape_;
  std::vector<Expr> point_;
  std::vector<std::string> so_far_, sums_;  // parameters, by accumulator
  std::vector<BufferId> buffers_;           // likewise
};

}  // namespace

RowSums split_sums(Program& program, const Step& call) { return Splitting(program, call).run(); }

int64_t sum_bytes(const Kernel& kernel) {
  const Definition& definition = *loop::only_definition(kernel);
  int64_t points = 1, bytes = 0;
  for (const Dim& extent : shape_of(definition)) points *= extent.constant();
  for (const Accumulator& acc : definition.accumulators) {
    bytes += points * byte_size(loop::element_of(acc.type.scalar));
  }
  return bytes;
}

}  // namespace backcast
