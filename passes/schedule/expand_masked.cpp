// The innermost loops of a reduction that leaves out factors of zero (nonzero_steps.h): from one
// set bit to the next.
#include <algorithm>

#include "ir/loop/visit.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/expansion.h"

namespace backcast {

using loop::Axis;
using loop::Expr;
using loop::Op;
using loop::Scalar;
using loop::Stmt;

/// The array of words for what the loops inside read of the factor.
void Expansion::mark_steps(const Bindings& bindings, std::vector<Stmt>& body) {
  const StepMask& mask = schedule_.taken;
  marks_ = fresh("marks");
  const int64_t words = mask.span * mask.words() * (schedule_.has_border() ? 2 : 1);
  body.push_back(loop::alloc(marks_, {mask.word, 1}, Expr(words), loop::Memory::stack));
  body.push_back(mask.results.empty() ? mark_rows(bindings) : mark_results(bindings, 0));
}

/// Where a row's words are.
Expr Expansion::word_at(const Expr& row, const Expr& word) const {
  const StepMask& mask = schedule_.taken;
  return mask.results.empty() ? row * Expr(mask.words()) + word : word * Expr(mask.span) + row;
}

Stmt Expansion::mark_rows(const Bindings& bindings) {
  const StepMask& mask = schedule_.taken;
  const int64_t bits = mask.bits(), whole = mask.count / bits, rest = mask.count % bits;
  const Expr first = loop::substitute(mask.first, bindings);
  const std::string row = fresh("row"), name = fresh("word");
  const Expr at = (first + loop::var(row)) * Expr(mask.count);
  const Expr word = loop::var(name);
  std::vector<Stmt> words, each;
  if (whole > 0) {
    mark_word(word_at(loop::var(row), word), at + word * Expr(bits), bits, each);
    words.push_back(loop::for_loop(name, Expr(0), Expr(whole), loop::block(each)));
  }
  if (rest > 0) {
    mark_word(word_at(loop::var(row), Expr(whole)), at + Expr(whole * bits), rest, words);
  }
  Expr begin = Expr(0), end = Expr(mask.span);
  if (mask.rows > 0) {
    begin = loop::max(begin, Expr(0) - first);
    end = loop::min(end, Expr(mask.rows) - first);
  }
  return loop::for_loop(row, begin, end - begin, loop::block(words));
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
  for (int32_t width = mask.gathered; done < elements; width /= 2) {
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

/// Bits of results next to one another, which read vectors of the factor, step by step.
Stmt Expansion::mark_results(const Bindings& bindings, size_t depth) {
  const StepMask& mask = schedule_.taken;
  const std::string& axis = mask.results[depth];
  const std::string variable = fresh(axis);
  Bindings inner = bindings;
  if (depth + 1 < mask.results.size()) {
    inner[axis] = loop::var(variable);
    return loop::for_loop(variable, Expr(0), axes_.at(axis)->extent,
                          mark_results(inner, depth + 1));
  }
  // As many at once as leave registers for what is compared.
  constexpr int64_t kMostVectors = 4;
  const int64_t extent = *static_extent(*axes_.at(axis));
  std::vector<Stmt> parts;
  int64_t done = 0;
  for (int32_t lanes = mask.lanes; done < extent; lanes /= 2) {
    while (done + lanes <= extent) {
      const int64_t vectors = std::min(kMostVectors, (extent - done) / lanes);
      const int64_t count = (extent - done) / (vectors * lanes);
      const std::string part = fresh(axis);
      inner[axis] = Expr(done) + loop::var(part) * Expr(vectors * lanes);
      parts.push_back(
          loop::for_loop(part, Expr(0), Expr(count), mark_vectors(inner, vectors, lanes)));
      done += count * vectors * lanes;
    }
  }
  return loop::block(parts);
}

/// All words of so many vectors of results.
Stmt Expansion::mark_vectors(const Bindings& bindings, int64_t vectors, int32_t lanes) {
  const StepMask& mask = schedule_.taken;
  const loop::Type type{mask.word, lanes};
  const int64_t bits = mask.bits(), whole = mask.count / bits, rest = mask.count % bits;
  const auto word = [&](const Expr& at, int64_t count) {
    const std::string bit = fresh("bit");
    std::vector<std::string> found = {fresh("found")};
    if (schedule_.has_border()) found.push_back(fresh("border"));
    std::vector<Stmt> body;
    for (const std::string& name : found) {
      body.push_back(loop::alloc(name, type, Expr(vectors), loop::Memory::registers));
      for (int64_t n = 0; n < vectors; ++n) {
        body.push_back(loop::store(name, Expr(n), loop::int_constant(type, 0)));
      }
    }
    const Expr step = at * Expr(bits) + loop::var(bit);
    body.push_back(
        loop::for_loop(bit, Expr(0), Expr(count),
                       mark_step(found, loop::var(bit), step, bindings, vectors, lanes)));
    const Expr row = loop::substitute(mask.row, bindings);
    for (size_t part = 0; part < found.size(); ++part) {
      const Expr first = Expr(static_cast<int64_t>(part) * mask.span * mask.words()) + row;
      for (int64_t n = 0; n < vectors; ++n) {
        body.push_back(loop::store(marks_, word_at(first + Expr(n * lanes), at),
                                   loop::load(type, found[part], Expr(n))));
      }
    }
    return loop::block(body);
  };
  std::vector<Stmt> words;
  const std::string name = fresh("word");
  if (whole > 0) {
    words.push_back(loop::for_loop(name, Expr(0), Expr(whole), word(loop::var(name), bits)));
  }
  if (rest > 0) words.push_back(word(Expr(whole), rest));
  return loop::block(words);
}

/// The bit of one step, where its conditions hold; those of jammed elements decide which word gets
/// it.
Stmt Expansion::mark_step(const std::vector<std::string>& found, const Expr& bit, const Expr& step,
                          Bindings place, int64_t vectors, int32_t lanes) {
  const StepMask& mask = schedule_.taken;
  const loop::Type type{mask.word, lanes}, one{mask.word, 1}, part{mask.element, lanes};
  bind_step(place, step);
  const auto& factors = values_[0]->args;
  const Expr& factor = factors[0]->name == mask.factor ? factors[0] : factors[1];
  const Expr at =
      loop::substitute(loop::flat_index(kernel_.find(mask.factor)->shape, factor->args), place);
  const Expr set = loop::broadcast(
      loop::binary(Op::shl, loop::int_constant(one, 1), loop::cast(one, bit)), lanes);
  const auto set_in = [&](const std::string& name) {
    std::vector<Stmt> body;
    for (int64_t n = 0; n < vectors; ++n) {
      const Expr value = loop::load(part, mask.factor, at + Expr(n * lanes));
      const Expr differs = loop::binary(Op::ne, value, loop::float_constant(part, 0));
      const Expr here = loop::select(differs, set, loop::int_constant(type, 0));
      body.push_back(loop::store(name, Expr(n),
                                 loop::binary(Op::bit_or, loop::load(type, name, Expr(n)), here)));
    }
    return loop::block(body);
  };
  Expr guard, all;
  for (const Expr& condition : guards_[0]) {
    const bool jammed = asks_jammed(condition);
    const Expr here = loop::substitute(jammed ? all_jammed(condition) : condition, place);
    Expr& both = jammed ? all : guard;
    both = both ? (both && here) : here;
  }
  Stmt body = set_in(found[0]);
  if (all) body = loop::if_branch(all, body, set_in(found[1]));
  return guard ? loop::if_branch(guard, body) : body;
}

bool Expansion::asks_jammed(const Expr& condition) const {
  const auto asks = [&](const std::string& jam) {
    return !jam.empty() && mentions(condition, jam);
  };
  return asks(schedule_.jam_axis) || asks(schedule_.outer_jam_axis);
}

/// Whether a condition, affine in a jammed axis, holds for the first and the last element of it.
Expr Expansion::all_jammed(const Expr& condition) const {
  Expr result;
  for (const std::string& jam : {schedule_.jam_axis, schedule_.outer_jam_axis}) {
    if (jam.empty() || !mentions(condition, jam)) continue;
    for (const int64_t element : {int64_t{0}, *static_extent(*axes_.at(jam)) - 1}) {
      const Expr part = loop::substitute(condition, {{jam, Expr(element)}});
      result = result ? (result && part) : part;
    }
  }
  return result;
}

/// A row of the tile in a step that not all jammed elements take.
void Expansion::border_updates(int64_t m, const Bindings& place, std::vector<Stmt>& body) {
  const Bindings jammed = at({}, m);
  Expr guard;
  for (const Expr& condition : guards_[0]) {
    // Bits are set only where the others hold.
    const Expr here = loop::simplify(loop::substitute(condition, jammed));
    if (!asks_jammed(condition) || always_holds(here)) continue;
    const Expr asked = loop::substitute(here, place);
    guard = guard ? (guard && asked) : asked;
  }
  std::vector<Stmt> row;
  LetCache lets = let_cache(row);
  guards_hold_ = true;
  for (int64_t n = 0; n < vectors(); ++n)
    update({m, n, chain_}, vectorizer(Expr(n)), place, lets, row);
  guards_hold_ = false;
  body.push_back(guard ? loop::if_branch(guard, loop::block(row)) : loop::block(row));
}

/// Whether an affine condition over reduction axes holds at all ends of these.
bool Expansion::always_holds(const Expr& condition) const {
  std::vector<Expr> corners = {condition};
  for (const Axis& axis : definition_.reduce_axes) {
    if (!mentions(condition, axis.name)) continue;
    std::vector<Expr> both;
    for (const Expr& corner : corners) {
      for (const int64_t end : {int64_t{0}, *static_extent(axis) - 1}) {
        both.push_back(loop::substitute(corner, {{axis.name, Expr(end)}}));
      }
    }
    corners = std::move(both);
  }
  return std::all_of(corners.begin(), corners.end(),
                     [](const Expr& corner) { return evaluate(corner, {}) == 1; });
}

/// The reduction axes' values in step number `step` of a row of bits.
void Expansion::bind_step(Bindings& reduce, const Expr& step) const {
  const StepMask& mask = schedule_.taken;
  const bool guarded = !mask.results.empty() && !guards_[0].empty() && !guards_hold_;
  Expr left = step;
  for (size_t i = mask.axes.size(); i-- > 0;) {
    const Expr extent = reduce_axes_[reduce_axes_.size() - mask.axes.size() + i].extent;
    const bool is_last = i + 1 == mask.axes.size();
    if (mask.is_joint && !guarded) {
      reduce[mask.axes[i]] = is_last ? step : Expr(0);
    } else {
      reduce[mask.axes[i]] = i > 0 ? loop::floor_mod(left, extent) : left;
      left = loop::floor_div(left, extent);
    }
  }
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
  const Expr first =
      packed_index(mask.fetched, place, Expr(0)) + Expr(block) + row * Expr(lines * line);
  for (int64_t i = 0; i < lines; ++i) {
    body.push_back(loop::prefetch(packing.parameter, first + Expr(i * line), loop::Cache::first));
  }
}

/// The steps whose bit is set, in the place of the loops over a row.
Stmt Expansion::masked_steps(const Bindings& bindings, const Bindings& reduce) {
  const StepMask& mask = schedule_.taken;
  Bindings place = bindings;
  place.insert(reduce.begin(), reduce.end());
  bind_step(place, Expr(0));
  bool never = false;
  // Across rows, bits are set only where conditions hold.
  const Expr guard = mask.results.empty() ? remaining_guard(0, place, never) : Expr();
  if (never) return loop::block({});
  std::vector<Stmt> steps;
  const Expr row = loop::substitute(mask.row, place);
  steps_of_row(row, bindings, reduce, steps);
  if (schedule_.has_border()) {
    at_border_ = true;
    steps_of_row(row + Expr(mask.span * mask.words()), bindings, reduce, steps);
    at_border_ = false;
  }
  return guard ? loop::if_branch(guard, loop::block(steps)) : loop::block(steps);
}

/// The steps of all words of a row.
void Expansion::steps_of_row(const Expr& row, const Bindings& bindings, const Bindings& reduce,
                             std::vector<Stmt>& steps) {
  const StepMask& mask = schedule_.taken;
  const auto of_words = [&](const Expr& word, int64_t joined) {
    const loop::Type type{joined > 1 || mask.bits() > 32 ? Scalar::u64 : Scalar::u32, 1};
    Expr bits;
    for (int64_t i = 0; i < joined; ++i) {
      Expr part = loop::load({mask.word, 1}, marks_, word_at(row, word + Expr(i)));
      part = loop::cast(type, part);
      if (i > 0) part = loop::binary(Op::shl, part, loop::int_constant(type, i * mask.bits()));
      bits = bits ? loop::binary(Op::bit_or, bits, part) : part;
    }
    return steps_of_word(bits, word * Expr(mask.bits()), bindings, reduce);
  };
  const int64_t joined = mask.joined, groups = mask.words() / joined, rest = mask.words() % joined;
  if (groups > 1) {
    const std::string name = fresh("word");
    const Stmt each = of_words(loop::var(name) * Expr(joined), joined);
    steps.push_back(loop::for_loop(name, Expr(0), Expr(groups), each));
  } else if (groups > 0) {
    steps.push_back(of_words(Expr(0), joined));
  }
  if (rest > 0) steps.push_back(of_words(Expr(groups * joined), rest));
}

/// `first`: the step of the word's lowest bit.
Stmt Expansion::steps_of_word(const Expr& word, const Expr& first, const Bindings& bindings,
                              const Bindings& reduce) {
  const loop::Type type = word.type();
  const std::string left = fresh("left");
  const Expr remaining = loop::load(type, left, Expr(0));
  chain_ = 0;
  guards_hold_ = !at_border_;
  const Stmt step = masked_step(left, remaining, first, bindings, reduce);
  guards_hold_ = false;
  return loop::block(
      {loop::alloc(left, type, Expr(1), loop::Memory::registers), loop::store(left, Expr(0), word),
       loop::while_loop(loop::binary(Op::ne, remaining, loop::int_constant(type, 0)), step)});
}

/// The step of the lowest bit that is left; the next one, if there is one, goes to the next chain.
Stmt Expansion::masked_step(const std::string& left, const Expr& remaining, const Expr& first,
                            const Bindings& bindings, Bindings reduce) {
  const std::string bits = fresh("bits"), step = fresh("step");
  const Expr current = loop::var(bits, remaining.type());
  const Expr one = loop::int_constant(remaining.type(), 1);
  const Expr lowest = loop::cast({}, loop::unary(Op::trailing_zeros, current));
  bind_step(reduce, loop::var(step));
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
