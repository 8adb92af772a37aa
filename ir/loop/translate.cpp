// Statements and definitions translated to instructions.
#include "ir/loop/translate.h"

#include "ir/graph/error.h"
#include "ir/loop/combine.h"
#include "ir/loop/integer_fold.h"
#include "ir/loop/translate_expr.h"

namespace backcast::loop::machine {
namespace {

class KernelTranslator {
 public:
  KernelTranslator(const Kernel& kernel, const std::map<std::string, MathFunction>& functions,
                   Code& code)
      : code_(code), exprs_(kernel, functions, code) {
    code.name = kernel.name;
    code.buffer_count = kernel.buffers.size();
    for (const BufferParam& param : kernel.buffers) {
      exprs_.bind_array(param.name, {new_array(param.name), {param.element, 1}, &param});
    }
    for (const std::string& size : kernel.sizes) {
      code.size_slots.push_back(exprs_.new_slots(1));
      exprs_.bind(size, code.size_slots.back(), Type{});
    }
    if (kernel.body) run(*kernel.body);
    exprs_.emit({.run = run_end});
  }

 private:
  int32_t new_array(const std::string& name) {
    code_.array_names.push_back(name);
    return static_cast<int32_t>(code_.array_names.size()) - 1;
  }

  int32_t value(const Expr& e) {
    exprs_.forget();
    return exprs_.run(e);
  }

  void run(const StmtNode& s) {
    switch (s.kind) {
      case StmtKind::block:
        for (const Stmt& child : s.body) run(*child);
        return;
      case StmtKind::let:
        return exprs_.bind(s.name, value(s.exprs[0]), s.exprs[0].type());
      case StmtKind::for_loop: {
        exprs_.forget();
        const int32_t begin = exprs_.run(s.exprs[0]);
        const Loop loop = enter(s.name, begin, exprs_.run(s.exprs[1]));
        run(*s.body[0]);
        return leave(loop);
      }
      case StmtKind::while_loop:
        return run_while(s);
      case StmtKind::if_branch:
        return run_if(s);
      case StmtKind::store: {
        exprs_.forget();
        const int32_t index = exprs_.run(s.exprs[0]);
        const int32_t stored = exprs_.run(s.exprs[1]);
        return exprs_.store(s.name, index, s.exprs[0].type(), stored, s.exprs[1].type());
      }
      case StmtKind::alloc: {
        const int32_t array = new_array(s.name);
        exprs_.emit({.run = run_allocate,
                     .a = value(s.exprs[0]),
                     .lanes = s.type.lanes,
                     .array = array,
                     .number = bit_width(s.type.scalar) / 8});
        return exprs_.bind_array(s.name, {array, s.type, nullptr});
      }
      case StmtKind::define:
        return run_definition(*s.definition);
      case StmtKind::prefetch:
        return;
    }
  }

  struct Loop {
    size_t enter = 0;
    int32_t variable = 0, end = 0;
  };

  Loop enter(const std::string& name, int32_t begin, int32_t extent) {
    Loop loop = {0, exprs_.new_slots(1), exprs_.new_slots(1)};
    exprs_.bind(name, loop.variable, Type{});
    loop.enter = exprs_.emit(
        {.run = run_enter_loop, .to = loop.variable, .a = begin, .b = loop.end, .c = extent});
    exprs_.forget();
    return loop;
  }

  void leave(const Loop& loop) {
    const size_t next = exprs_.emit({.run = run_next, .to = loop.variable, .b = loop.end});
    exprs_.jump_to(next, loop.enter + 1);
    exprs_.jump_to(loop.enter, exprs_.position());
    exprs_.forget();
  }

  void run_while(const StmtNode& s) {
    const size_t start = exprs_.position();
    const size_t skip = exprs_.emit({.run = run_jump_unless, .a = value(s.exprs[0])});
    run(*s.body[0]);
    exprs_.jump_to(exprs_.emit({.run = run_jump}), start);
    exprs_.jump_to(skip, exprs_.position());
  }

  void run_if(const StmtNode& s) {
    const int32_t condition = value(s.exprs[0]);
    const size_t skip = exprs_.emit({.run = run_jump_unless, .a = condition});
    run(*s.body[0]);
    if (s.body.size() > 1) {
      const size_t leave_then = exprs_.emit({.run = run_jump});
      exprs_.jump_to(skip, exprs_.position());
      run(*s.body[1]);
      exprs_.jump_to(leave_then, exprs_.position());
    } else {
      exprs_.jump_to(skip, exprs_.position());
    }
  }

  std::vector<Loop> enter_axes(const std::vector<Axis>& axes) {
    std::vector<Loop> loops;
    const int32_t zero = exprs_.constant_slot(*index_constant(0));
    for (const Axis& axis : axes) loops.push_back(enter(axis.name, zero, value(axis.extent)));
    return loops;
  }
  void leave_axes(const std::vector<Loop>& loops) {
    for (size_t i = loops.size(); i-- > 0;) leave(loops[i]);
  }

  void copy(int32_t to, int32_t from, Type type) {
    exprs_.emit({.run = run_copy, .to = to, .a = from, .lanes = type.lanes});
  }

  /// One step of the reduction: all new values first, then all accumulators.
  void accumulate(const std::vector<Accumulator>& accumulators) {
    std::vector<int32_t> next;
    std::vector<Expr> values;  // kept: the translator knows nodes by their addresses
    exprs_.forget();
    for (const Accumulator& acc : accumulators) {
      if (acc.value.type() != acc.type || acc.init.type() != acc.type) {
        exprs_.fail("accumulator " + acc.name + " and its value differ in type");
      }
      values.push_back(combined(acc.combine, var(acc.name, acc.type), acc.value));
      next.push_back(exprs_.run(values.back()));
    }
    // A general value may be another accumulator itself: copies must not see each other.
    std::vector<int32_t> stable;
    for (size_t i = 0; i < accumulators.size(); ++i) {
      const Accumulator& acc = accumulators[i];
      const bool plain = acc.combine != Combine::general || acc.value->kind != ExprKind::var;
      stable.push_back(plain ? next[i] : exprs_.new_slots(acc.type.lanes));
      if (!plain) copy(stable[i], next[i], acc.type);
    }
    for (size_t i = 0; i < accumulators.size(); ++i) {
      copy(exprs_.run(var(accumulators[i].name, accumulators[i].type)), stable[i],
           accumulators[i].type);
    }
    exprs_.forget();
  }

  void run_definition(const Definition& d) {
    const std::vector<Loop> axes = enter_axes(d.axes);
    std::vector<int32_t> initial;
    exprs_.forget();
    for (const Accumulator& acc : d.accumulators) initial.push_back(exprs_.run(acc.init));
    for (size_t i = 0; i < d.accumulators.size(); ++i) {
      const Accumulator& acc = d.accumulators[i];
      const int32_t slot = exprs_.new_slots(acc.type.lanes);
      copy(slot, initial[i], acc.type);
      exprs_.bind(acc.name, slot, acc.type);
    }
    if (!d.accumulators.empty()) {
      const std::vector<Loop> reduction = enter_axes(d.reduce_axes);
      accumulate(d.accumulators);
      leave_axes(reduction);
    }
    exprs_.forget();
    // All values before all stores: an output may lie where another's value reads.
    std::vector<std::pair<int32_t, int32_t>> stores;
    for (const DefinitionOutput& out : d.outputs) {
      const int32_t index = exprs_.flatten(out.buffer, out.indices);
      stores.emplace_back(index, exprs_.run(out.value));
    }
    for (size_t i = 0; i < d.outputs.size(); ++i) {
      exprs_.store(d.outputs[i].buffer, stores[i].first, Type{}, stores[i].second,
                   d.outputs[i].value.type());
    }
    leave_axes(axes);
  }

  Code& code_;
  ExprTranslator exprs_;
};

}  // namespace

Code translate(const Kernel& kernel, const std::map<std::string, MathFunction>& functions) {
  Code code;
  KernelTranslator(kernel, functions, code);
  return code;
}

void run(const Code& code, const std::vector<Array>& buffers, const std::vector<int64_t>& sizes) {
  BC_CHECK(buffers.size() == code.buffer_count && sizes.size() == code.size_slots.size(),
           "kernel {} takes {} buffers and {} sizes, not {} and {}", code.name, code.buffer_count,
           code.size_slots.size(), buffers.size(), sizes.size());
  std::vector<Slot> slots = code.initial;
  for (size_t i = 0; i < sizes.size(); ++i) {
    slots[static_cast<size_t>(code.size_slots[i])] = static_cast<Slot>(sizes[i]);
  }
  std::vector<Array> arrays = buffers;
  arrays.resize(code.array_names.size());
  std::vector<std::vector<std::byte>> locals(arrays.size());
  Frame frame = {slots.data(), arrays.data(), &locals, &code.name, &code.array_names};
  const Instruction* next = code.instructions.data();
  while (next != nullptr) next = next->run(frame, next);
}

}  // namespace backcast::loop::machine
