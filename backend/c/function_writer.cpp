// Expressions of one C function (kernel_writer.h).
#include "backend/c/kernel_writer.h"
#include "backend/c/neon.h"
#include "ir/graph/error.h"
#include "ir/loop/byte_tables.h"
#include "ir/loop/math_library.h"
#include "ir/loop/words.h"

namespace backcast::c_backend {

using loop::Expr;
using loop::ExprKind;
using loop::ExprNode;
using loop::Op;
using loop::Scalar;
using loop::Type;

namespace {

/// f32x8, i32, mask16x4, bool, index: what names of types and helpers end in.
bool is_type_tag(std::string_view word) {
  if (word == "bool" || word == "index" || word == "u") return true;
  for (const std::string_view prefix : {"mask", "bf", "f", "i", "u"}) {
    if (!word.starts_with(prefix) || word.size() == prefix.size()) continue;
    word.remove_prefix(prefix.size());
    return word.find_first_not_of("0123456789x") == std::string_view::npos;
  }
  return false;
}

/// Could the file hold a type or function of this name?
bool belongs_to_file(const std::string& name) {
  for (const char* prefix : {"kernel_", "math_", "const_", "bits_"}) {
    if (name.starts_with(prefix)) return true;
  }
  const size_t last = name.rfind('_');
  return is_type_tag(last == std::string::npos ? name : name.substr(last + 1));
}

bool is_leaf(const Expr& e) { return e->kind == ExprKind::constant || e->kind == ExprKind::var; }

/// Cheap enough to be written wherever it is used.
bool is_trivial(const Expr& e) {
  if (is_leaf(e)) return true;
  if (e->kind == ExprKind::broadcast) return is_leaf(e->args[0]);
  return e->kind == ExprKind::binary && e.type() == Type{} && is_leaf(e->args[0]) &&
         is_leaf(e->args[1]);
}

bool is_word(const std::string& text) {
  return text.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
         std::string::npos;
}

}  // namespace

FunctionWriter::FunctionWriter(Prelude& prelude,
                               const std::map<std::string, loop::MathFunction>& functions)
    : prelude_(prelude), functions_(functions), names_({"index_t", "lane"}) {}

std::string FunctionWriter::local_of(std::map<std::string, std::string>& names,
                                     const std::string& name) {
  const auto found = names.find(name);
  if (found != names.end()) return found->second;
  std::string wanted = sanitize(name);
  if (belongs_to_file(wanted)) wanted += '_';
  return names[name] = names_.make(wanted);
}

void FunctionWriter::bind(const std::string& name, int mask_bits) { mask_bits_[name] = mask_bits; }

void FunctionWriter::line(const std::string& text) {
  text_.append(static_cast<size_t>(2 * indent_), ' ');
  text_ += text;
  text_ += '\n';
}

void FunctionWriter::open(const std::string& text) {
  line(text + " {");
  ++indent_;
}

void FunctionWriter::close(const std::string& text) {
  --indent_;
  line(text);
}

void FunctionWriter::begin_statement(const std::vector<Expr>& exprs) {
  uses_.clear();
  known_.clear();
  order_.clear();
  std::vector<Expr> pending(exprs);
  while (!pending.empty()) {
    const Expr e = pending.back();
    pending.pop_back();
    if (++uses_[e.get()] > 1) continue;
    for (const Expr& arg : e->args) pending.push_back(arg);
  }
}

Text FunctionWriter::temporary(Type type, const Text& value) {
  const std::string name = names_.make(fmt::format("t{}", temporaries_++));
  line(fmt::format("const {} {} = {};", prelude_.type(type, value.mask_bits), name, value.text));
  Text result = {name};
  result.mask_bits = value.mask_bits;
  return result;
}

Text FunctionWriter::expr(const Expr& e) {
  const auto found = known_.find(e.get());
  if (found != known_.end()) return found->second;
  Text text = node_text(e);
  const auto uses = uses_.find(e.get());
  if (uses == uses_.end() || uses->second < 2 || is_trivial(e)) return text;
  if (!is_word(text.text)) text = temporary(e.type(), text);
  known_.emplace(e.get(), text);
  order_.push_back(e.get());
  return text;
}

void FunctionWriter::forget_since(size_t count) {
  for (size_t i = count; i < order_.size(); ++i) known_.erase(order_[i]);
  order_.resize(count);
}

Text FunctionWriter::name_of(const Expr& e) {
  const Text text = expr(e);
  return is_word(text.text) ? text : temporary(e.type(), text);
}

Text FunctionWriter::node_text(const Expr& e) {
  const ExprNode& node = *e;
  switch (node.kind) {
    case ExprKind::constant:
      return constant_text(prelude_, node);
    case ExprKind::var: {
      Text text = {local(node.name)};
      const auto bits = mask_bits_.find(node.name);
      if (bits != mask_bits_.end()) text.mask_bits = bits->second;
      return text;
    }
    case ExprKind::load:
      return load_text(node);
    case ExprKind::unary:
      return unary_text(prelude_, node.op, node.args[0].type(), expr(node.args[0]));
    case ExprKind::binary:
      return binary_of(node);
    case ExprKind::fma: {
      const Text scaled = scaled_sum(node.args[0], node.args[1], node.args[2]);
      if (!scaled.text.empty()) return scaled;
      const Text a = expr(node.args[0]), b = expr(node.args[1]);
      return fma_text(prelude_, node.type, a, b, expr(node.args[2]));
    }
    case ExprKind::select: {
      const Text condition = expr(node.args[0]), a = expr(node.args[1]);
      return select_text(prelude_, node.type, condition, a, expr(node.args[2]));
    }
    case ExprKind::if_then_else:
      return if_text(node);
    case ExprKind::cast: {
      const Text loaded = converted_load(node);
      if (!loaded.text.empty()) return loaded;
      return cast_text(prelude_, node.args[0].type(), node.type, expr(node.args[0]));
    }
    case ExprKind::bitcast:
      return bitcast_text(prelude_, node.args[0].type(), node.type, expr(node.args[0]));
    case ExprKind::ramp: {
      const Text base = expr(node.args[0]);
      return ramp_text(prelude_, node.type, base, expr(node.args[1]));
    }
    case ExprKind::broadcast:
      return broadcast_text(prelude_, node.type, expr(node.args[0]));
    case ExprKind::shuffle: {
      std::vector<Text> args;
      std::vector<Type> types;
      for (const Expr& arg : node.args) {
        args.push_back(name_of(arg));
        types.push_back(arg.type());
      }
      if (repeats_neon_lane(prelude_, node)) {
        return repeated_neon_lane_text(prelude_, node.type, args[0], node.indices[0]);
      }
      return shuffle_text(prelude_, node.type, types, std::move(args), node.indices);
    }
    case ExprKind::reduce_lanes:
      if (is_summed(node)) return summed_product(node, {"0"});
      return reduce_text(prelude_, node.op, node.args[0].type(), expr(node.args[0]));
    case ExprKind::call:
      return call_text(node);
    case ExprKind::access:
      break;
  }
  BC_CHECK(false, "expression of kind {} ({}) must have been lowered before code is emitted",
           static_cast<int>(node.kind), node.name);
}

/// An addition and a product of words that is used nowhere else become one operation where there
/// is one.
Text FunctionWriter::binary_of(const ExprNode& node) {
  for (const size_t side : {1u, 0u}) {
    const Expr& product = node.args[side];
    if (node.op != Op::add) continue;
    const auto uses = uses_.find(product.get());
    if (uses != uses_.end() && uses->second > 1) continue;
    if (is_summed(*product)) return summed_product(*product, expr(node.args[1 - side]));
    if (product->kind != ExprKind::binary) continue;
    if (product->op == Op::mul && node.type.scalar == Scalar::i32) {
      const Expr sum = node.args[1 - side];
      const Text scaled = scaled_sum(product->args[0], product->args[1], sum);
      if (!scaled.text.empty()) return scaled;
    }
    const Text by_neon = neon_sum(*product, node.args[1 - side]);
    if (!by_neon.text.empty()) return by_neon;
    if (!adds_products(prelude_.target(), product->op, node.type)) continue;
    const Text sum = expr(node.args[1 - side]), a = expr(product->args[0]);
    return product_sum_text(prelude_, product->op, node.type, a, expr(product->args[1]), sum);
  }
  const Text a = expr(node.args[0]);
  return binary_text(prelude_, node.op, node.args[0].type(), a, expr(node.args[1]));
}

/// The same as an instruction of NEON, of which one factor may be a lane; empty where there is
/// none.
Text FunctionWriter::neon_sum(const ExprNode& product, const Expr& sum) {
  const std::vector<Expr> factors = neon_factors(prelude_.target(), product);
  if (factors.empty()) return {};
  for (const size_t side : {0u, 1u}) {
    const Expr &lanes = factors[side], &other = factors[1 - side];
    if (!repeats_neon_lane(prelude_, *lanes)) continue;
    const Text a = expr(other), b = name_of(lanes->args[0]);
    return neon_product_sum_text(prelude_, other.type(), a, b, expr(sum), lanes->indices[0]);
  }
  const Text a = expr(factors[0]), b = expr(factors[1]);
  return neon_product_sum_text(prelude_, factors[0].type(), a, b, expr(sum), std::nullopt);
}

/// a * b + sum where one factor is a scalar in all lanes and the target multiplies by those; empty
/// elsewhere.
Text FunctionWriter::scaled_sum(const Expr& a, const Expr& b, const Expr& sum) {
  if (!prelude_.target().scalar_factors) return {};
  for (const auto& [vector, scalar] : {std::pair(b, a), std::pair(a, b)}) {
    if (scalar->kind != ExprKind::broadcast) continue;
    const Text factor = expr(vector), scale = expr(scalar->args[0]);
    return fma_scalar_text(prelude_, sum.type(), factor, scale, expr(sum));
  }
  return {};
}

bool FunctionWriter::is_summed(const ExprNode& node) const {
  return loop::sums_byte_products(node) &&
         prelude_.target().sums_byte_products(node.args[0].type().lanes);
}

Text FunctionWriter::summed_product(const ExprNode& node, const Text& sum) {
  const Expr& product = node.args[0];
  const Text a = expr(product->args[0]);
  return summed_byte_product_text(prelude_, product.type(), a, expr(product->args[1]), sum);
}

Text FunctionWriter::if_text(const ExprNode& node) {
  const Text condition = expr(node.args[0]);
  std::string before = std::move(text_);
  std::string lines[2];
  Text values[2];
  ++indent_;
  for (size_t side = 0; side < 2; ++side) {
    // What a branch computes is known in that branch only.
    const size_t known = order_.size();
    text_.clear();
    values[side] = expr(node.args[1 + side]);
    if (node.type.scalar == Scalar::boolean && node.type.is_vector()) {
      values[side] = convert_mask(prelude_, values[side], node.type.lanes, Prelude::kMaskBits);
    }
    lines[side] = std::move(text_);
    forget_since(known);
  }
  --indent_;
  text_ = std::move(before);
  if (lines[0].empty() && lines[1].empty()) {
    const std::string chosen = fmt::format("{} ? {} : {}", condition.at(kUnary),
                                           values[0].at(kUnary), values[1].at(kUnary));
    const bool is_narrow = loop::is_integer(node.type.scalar) && !node.type.is_vector() &&
                           prelude_.bits(node.type.scalar) < 32;
    if (!is_narrow) return {chosen, kLoose};
    return {fmt::format("({})({})", prelude_.type(node.type), chosen), kUnary};
  }
  const std::string name = names_.make(fmt::format("t{}", temporaries_++));
  line(fmt::format("{} {};", prelude_.type(node.type), name));
  open(fmt::format("if ({})", condition.text));
  for (size_t side = 0; side < 2; ++side) {
    text_ += lines[side];
    line(fmt::format("{} = {};", name, values[side].text));
    if (side == 0) {
      close("} else {");
      ++indent_;
    }
  }
  close();
  return {name};
}

Text FunctionWriter::call_text(const ExprNode& node) {
  const std::string function = loop::called_name(node);
  const auto found = functions_.find(function);
  BC_CHECK(found != functions_.end(), "the program has no math function {}", function);
  BC_CHECK(found->second.params.size() == node.args.size(), "{} takes {} arguments, not {}",
           function, found->second.params.size(), node.args.size());
  called_.insert(function);
  std::string list;
  for (const Expr& arg : node.args) {
    Text text = expr(arg);
    if (arg.type().scalar == Scalar::boolean && arg.type().is_vector()) {
      text = convert_mask(prelude_, text, arg.type().lanes, Prelude::kMaskBits);
    }
    list += (list.empty() ? "" : ", ") + text.text;
  }
  return {math_name(function) + "(" + list + ")"};
}

const Place& FunctionWriter::place(const std::string& name) const {
  const auto found = places_.find(name);
  BC_CHECK(found != places_.end(), "unknown buffer {}", name);
  return found->second;
}

int64_t FunctionWriter::variable_index(const Expr& index) {
  int64_t value = -1;
  BC_CHECK(loop::as_constant(index, value) && value >= 0,
           "index of a register allocation is no constant");
  return value;
}

namespace {

/// The first lane's index when lanes follow each other in memory; else null.
Expr contiguous_index(const Expr& index) {
  if (!index.type().is_vector()) return index;
  if (index->kind == ExprKind::ramp && loop::is_constant(index->args[1], 1)) return index->args[0];
  return {};
}

std::string address(const Place& place, const Text& index) {
  if (index.constant == 0) return place.name;
  return place.name + " + " + index.at(kSum);
}

}  // namespace

/// Lane indices as cheap texts.
std::vector<std::string> FunctionWriter::lane_indices(const Expr& index) {
  std::vector<std::string> result;
  const int32_t lanes = index.type().lanes;
  const bool is_ramp = index->kind == ExprKind::ramp;
  // Lanes of narrower integers are places as they are.
  const bool widens =
      index->kind == ExprKind::cast && loop::is_integer(index->args[0].type().scalar);
  const Text first = name_of(is_ramp || widens ? index->args[0] : index);
  const Text stride = is_ramp ? name_of(index->args[1]) : Text{};
  for (int32_t lane = 0; lane < lanes; ++lane) {
    if (!is_ramp) {
      result.push_back(fmt::format("{}[{}]", first.text, lane));
    } else if (stride.constant) {
      result.push_back(fmt::format("{} + {}", first.text, lane * *stride.constant));
    } else {
      result.push_back(fmt::format("{} + {} * {}", first.text, lane, stride.text));
    }
  }
  return result;
}

Text FunctionWriter::load_text(const ExprNode& node) {
  const Place& from = place(node.name);
  const Expr& index = node.args[0];
  const bool is_bool = node.type.scalar == Scalar::boolean;
  if (from.variables) return {fmt::format("{}_{}", from.name, variable_index(index))};
  if (from.element.is_vector() || !node.type.is_vector()) {
    BC_CHECK(from.element.lanes == node.type.lanes, "a value of type {} in an array of {}",
             node.type.to_string(), from.element.to_string());
    const Text element = {fmt::format("{}[{}]", from.name, expr(index).text)};
    if (!is_bool) return element;
    const Type memory = from.element.with_lanes(node.type.lanes);
    return cast_text(prelude_, {Scalar::u8, memory.lanes}, node.type, element);
  }
  if (const Expr first = contiguous_index(index)) {
    return load_vector(prelude_, node.type, address(from, expr(first)));
  }
  if (from.is_byte_table && prelude_.target().byte_tables && loop::looks_up_byte(node)) {
    return byte_look_up_text(prelude_, node.type, from.name, expr(loop::byte_place(node)));
  }
  const Type memory = {is_bool ? Scalar::u8 : node.type.scalar, node.type.lanes};
  std::string list;
  for (const std::string& lane : lane_indices(index)) {
    list += fmt::format("{}{}[{}]", list.empty() ? "" : ", ", from.name, lane);
  }
  const Text gathered = {fmt::format("({}){{{}}}", prelude_.type(memory), list)};
  return is_bool ? cast_text(prelude_, memory, node.type, gathered) : gathered;
}

/// The cast of a load that converts; empty where it is nothing of the kind.
Text FunctionWriter::converted_load(const ExprNode& node) {
  const ExprNode& load = *node.args[0];
  if (load.kind != ExprKind::load) return {};
  const Place& from = place(load.name);
  const Expr first = contiguous_index(load.args[0]);
  if (from.variables || from.element.is_vector() || !first ||
      !converts_in_memory(prelude_, load.type.scalar, node.type)) {
    return {};
  }
  return load_converted(prelude_, load.type.scalar, node.type, address(from, expr(first)));
}

/// The address may lie behind the buffer, where a pointer must not.
void FunctionWriter::prefetch(const std::string& buffer, const Expr& index, loop::Cache cache) {
  const Place& from = place(buffer);
  line(fmt::format(
      "__builtin_prefetch((const void *)((uintptr_t){} + {} * (uintptr_t)({})), 0, {});", from.name,
      prelude_.bits(from.element.scalar) / 8, expr(index).at(kSum),
      cache == loop::Cache::first ? 3 : 2));
}

void FunctionWriter::store(const std::string& buffer, const Expr& index, const Expr& value) {
  const Place& to = place(buffer);
  const Type type = value.type();
  const bool is_bool = type.scalar == Scalar::boolean;
  if (to.variables) {
    Text text = expr(value);
    if (is_bool && type.is_vector()) {
      text = convert_mask(prelude_, text, type.lanes, Prelude::kMaskBits);
    }
    line(fmt::format("{}_{} = {};", to.name, variable_index(index), text.text));
    return;
  }
  if (to.element.is_vector() || !type.is_vector()) {
    BC_CHECK(to.element.lanes == type.lanes, "a value of type {} in an array of {}",
             type.to_string(), to.element.to_string());
    const Text at = expr(index);
    Text text = expr(value);
    if (is_bool) text = cast_text(prelude_, type, {Scalar::u8, type.lanes}, text);
    line(fmt::format("{}[{}] = {};", to.name, at.text, text.text));
    return;
  }
  if (const Expr first = contiguous_index(index)) {
    const Text at = expr(first);
    const bool converts = value->kind == ExprKind::cast &&
                          converts_in_memory(prelude_, type.scalar, value->args[0].type());
    const std::string text = converts
                                 ? store_converted(prelude_, value->args[0].type(), type.scalar,
                                                   address(to, at), expr(value->args[0]))
                                 : store_vector(prelude_, type, address(to, at), expr(value));
    line(text + ";");
    return;
  }
  const std::vector<std::string> lanes = lane_indices(index);
  const Text source = name_of(value);
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    const std::string element = fmt::format("{}[{}]", source.text, lane);
    line(fmt::format("{}[{}] = {};", to.name, lanes[lane],
                     is_bool ? fmt::format("(uint8_t)({} != 0)", element) : element));
  }
}

}  // namespace backcast::c_backend
