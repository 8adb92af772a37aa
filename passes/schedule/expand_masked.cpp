// The innermost loops of a reduction that leaves out factors of zero (nonzero_steps.h): from one
// set bit to the next.
#include <algorithm>

#include "ir/loop/visit.h"
#include "passes/schedule/expansion.h"

namespace backcast {

using loop::Expr;
using loop::Op;
using loop::Scalar;
using loop::Stmt;

/// The array of words for what the loops inside read of the factor.
void Expansion::mark_steps(const Bindings& bindings, std::vector<Stmt>& body) {
  const StepMask& mask = schedule_.taken;
  const int64_t bits = mask.bits(), whole = mask.count / bits, rest = mask.count % bits;
  marks_ = fresh("marks");
  body.push_back(
      loop::alloc(marks_, {mask.word, 1}, Expr(mask.span * mask.words()), loop::Memory::stack));
  const Expr first = loop::substitute(mask.first, bindings);
  const std::string row = fresh("row"), name = fresh("word");
  const Expr at = (first + loop::var(row)) * Expr(mask.count);
  const Expr to = loop::var(row) * Expr(mask.words()), word = loop::var(name);
  std::vector<Stmt> words, each;
  if (whole > 0) {
    mark_word(to + word, at + word * Expr(bits), bits, each);
    words.push_back(loop::for_loop(name, Expr(0), Expr(whole), loop::block(each)));
  }
  if (rest > 0) mark_word(to + Expr(whole), at + Expr(whole * bits), rest, words);
  Expr begin = Expr(0), end = Expr(mask.span);
  if (mask.rows > 0) {
    begin = loop::max(begin, Expr(0) - first);
    end = loop::min(end, Expr(mask.rows) - first);
  }
  body.push_back(loop::for_loop(row, begin, end - begin, loop::block(words)));
}

/// Word `to` gets the bits of the elements from flat index `at` on, the first in the lowest bit: by
/// vectors or, without these, one by one by what they consist of, which takes no floating-point
/// comparison.
void Expansion::mark_word(const Expr& to, const Expr& at, int64_t elements,
                          std::vector<Stmt>& body) {
  const StepMask& mask = schedule_.taken;
  const loop::Type type{mask.word, 1};
  if (mask.lanes == 1) {
    const loop::Type bits{mask.element == Scalar::f64 ? Scalar::u64 : Scalar::u32, 1};
    const std::string found = fresh("found"), bit = fresh("bit");
    const Expr value = loop::load({mask.element, 1}, mask.factor, at + loop::var(bit));
    const Expr magnitude =
        loop::binary(Op::shl, loop::bitcast(bits, value), loop::int_constant(bits, 1));
    const Expr differs = loop::binary(Op::ne, magnitude, loop::int_constant(bits, 0));
    const Expr known = loop::load(type, found, Expr(0));
    const Expr set =
        loop::binary(Op::shl, loop::cast(type, differs), loop::cast(type, loop::var(bit)));
    body.push_back(loop::alloc(found, type, Expr(1), loop::Memory::registers));
    body.push_back(loop::store(found, Expr(0), loop::int_constant(type, 0)));
    body.push_back(
        loop::for_loop(bit, Expr(0), Expr(elements),
                       loop::store(found, Expr(0), loop::binary(Op::bit_or, known, set))));
    body.push_back(loop::store(marks_, to, known));
    return;
  }
  Expr result;
  int64_t done = 0;
  for (int32_t width = mask.lanes; done < elements; width /= 2) {
    for (; done + width <= elements; done += width) {
      const loop::Type part{mask.element, width};
      const Expr value = loop::load(part, mask.factor, at + Expr(done));
      const Expr differs = loop::binary(Op::ne, value, loop::float_constant(part, 0));
      Expr set = loop::cast(type, width > 1 ? loop::unary(Op::lane_bits, differs) : differs);
      if (done > 0) set = loop::binary(Op::shl, set, loop::int_constant(type, done));
      result = result ? loop::binary(Op::bit_or, result, set) : set;
    }
  }
  body.push_back(loop::store(marks_, to, result));
}

/// Each row asks for its part of the weights that the next block of the reduction reads, which lie
/// right behind this one's.
void Expansion::fetch_next_block(const Bindings& bindings, std::vector<Stmt>& body) const {
  const StepMask& mask = schedule_.taken;
  if (mask.fetched.empty()) return;
  Bindings place = bindings;
  for (const loop::Axis& axis : reduce_axes_) place[axis.name] = Expr(0);
  const Packing& packing = schedule_.packed.at(mask.fetched);
  constexpr int64_t kLine = 64;
  const int64_t line = kLine / byte_size(loop::element_of(kernel_.find(mask.fetched)->element));
  const int64_t block = packing.reduce_count() / schedule_.blocks * segment_->width();
  int64_t rows = 1;
  const Expr row = row_in_block(place, {}, rows);
  const int64_t lines = (block / line + rows - 1) / rows;
  const Expr first = packed_index(mask.fetched, place, 0) + Expr(block) + row * Expr(lines * line);
  for (int64_t i = 0; i < lines; ++i) {
    body.push_back(loop::prefetch(packing.parameter, first + Expr(i * line), loop::Cache::first));
  }
}

/// The steps whose bit is set, in the place of the loops over a row. As their axes run through what
/// is read without a gap, the last of them alone can count.
Stmt Expansion::masked_steps(const Bindings& bindings, const Bindings& reduce) {
  const StepMask& mask = schedule_.taken;
  Bindings inner = reduce, place = bindings;
  for (const std::string& axis : mask.axes) inner[axis] = Expr(0);
  place.insert(inner.begin(), inner.end());
  bool never = false;
  const Expr guard = remaining_guard(0, place, never);
  if (never) return loop::block({});
  const std::string name = mask.words() > 1 ? fresh("word") : "";
  const Expr word = mask.words() > 1 ? loop::var(name) : Expr(0);
  const Expr row = loop::substitute(mask.row, place);
  const Expr marks = loop::load({mask.word, 1}, marks_, row * Expr(mask.words()) + word);
  Stmt steps = steps_of_word(marks, word * Expr(mask.bits()), bindings, inner);
  if (mask.words() > 1) steps = loop::for_loop(name, Expr(0), Expr(mask.words()), steps);
  return guard ? loop::if_branch(guard, steps) : steps;
}

/// `first`: the step of the word's lowest bit.
Stmt Expansion::steps_of_word(const Expr& word, const Expr& first, const Bindings& bindings,
                              const Bindings& reduce) {
  const bool wide = schedule_.taken.bits() > 32;
  const loop::Type type{wide ? Scalar::u64 : Scalar::u32, 1};
  const std::string left = fresh("left");
  const Expr remaining = loop::load(type, left, Expr(0));
  chain_ = 0;
  guards_hold_ = true;
  const Stmt step = masked_step(left, remaining, first, bindings, reduce);
  guards_hold_ = false;
  return loop::block(
      {loop::alloc(left, type, Expr(1), loop::Memory::registers),
       loop::store(left, Expr(0), loop::cast(type, word)),
       loop::while_loop(loop::binary(Op::ne, remaining, loop::int_constant(type, 0)), step)});
}

/// The step of the lowest bit that is left; the next one, if there is one, goes to the next chain.
Stmt Expansion::masked_step(const std::string& left, const Expr& remaining, const Expr& first,
                            const Bindings& bindings, Bindings reduce) {
  const std::string bits = fresh("bits"), step = fresh("step");
  const Expr current = loop::var(bits, remaining.type());
  const Expr one = loop::int_constant(remaining.type(), 1);
  const Expr lowest = loop::cast({}, loop::unary(Op::trailing_zeros, current));
  reduce[schedule_.taken.axes.back()] = loop::var(step);
  std::vector<Stmt> body = {
      loop::let(bits, remaining), loop::let(step, lowest + first),
      loop::store(left, Expr(0), loop::binary(Op::bit_and, current, current - one)),
      updates(bindings, reduce)};
  if (++chain_ < schedule_.chains) {
    const Expr more = loop::binary(Op::ne, remaining, loop::int_constant(remaining.type(), 0));
    body.push_back(loop::if_branch(more, masked_step(left, remaining, first, bindings, reduce)));
  }
  chain_ = 0;
  return loop::block(body);
}

}  // namespace backcast
