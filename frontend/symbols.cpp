// Names are made valid once; every occurrence of a dim_param means the same dimension.
#include "frontend/symbols.h"

#include <algorithm>
#include <cctype>

#include "ir/graph/error.h"

namespace backcast {
namespace {

/// Whether a dim_param names a dimension; Paddle's converters write "?" for what has no name.
bool is_named(const OnnxDim& dim) {
  return std::any_of(dim.symbol.begin(), dim.symbol.end(),
                     [](unsigned char c) { return c >= 128 || std::isalnum(c); });
}

/// Whether a dim_value is an extent; they write -1 for what is unknown.
bool is_fixed(const OnnxDim& dim) { return dim.value && *dim.value >= 0; }

bool is_name(const std::string& text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) return false;
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return c < 128 && (std::isalnum(c) || c == '_'); });
}

/// The text that stands for a dimension without a fixed extent.
std::string text_of(const OnnxDim& dim, const std::string& input, size_t axis) {
  return is_named(dim) ? dim.symbol : fmt::format("{}_dim{}", input, axis);
}

/// The extents that the dimensions of an input have in some calls, by the dimensions' texts.
void collect_extents(const OnnxValueInfo& input, const std::vector<std::vector<int64_t>>& shapes,
                     std::map<std::string, DimRange>& seen) {
  for (const std::vector<int64_t>& shape : shapes) {
    if (shape.size() != input.shape->size()) continue;  // said where the input is given
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const OnnxDim& dim = (*input.shape)[axis];
      if (is_fixed(dim)) continue;
      DimRange& range =
          seen.emplace(text_of(dim, input.name, axis), DimRange{shape[axis], shape[axis]})
              .first->second;
      range = {std::min(range.min, shape[axis]), std::max(range.max, shape[axis])};
    }
  }
}

}  // namespace

SymbolTable::SymbolTable(const std::vector<OnnxValueInfo>& inputs, const ImportOptions& options)
    : options_(options) {
  for (const OnnxValueInfo& input : inputs) {
    if (!input.shape) continue;
    for (const OnnxDim& dim : *input.shape) {
      if (is_name(dim.symbol)) plain_names_.insert(dim.symbol);
    }
    const auto sequence = options.sequences.find(input.name);
    if (sequence != options.sequences.end() && sequence->second >= 0 &&
        sequence->second < static_cast<int64_t>(input.shape->size())) {
      const size_t axis = static_cast<size_t>(sequence->second);
      if (!is_fixed((*input.shape)[axis])) {
        endless_.insert(text_of((*input.shape)[axis], input.name, axis));
      }
    }
    const auto shapes = options.shapes.find(input.name);
    if (shapes != options.shapes.end()) collect_extents(input, shapes->second, seen_);
  }
}

std::string symbol_name(const std::string& text) {
  std::string name;
  for (const unsigned char c : text) {
    name += c < 128 && std::isalnum(c) ? static_cast<char>(c) : '_';
  }
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "d" + name;
  // Words of the text form's expressions.
  if (name == "min" || name == "max" || name == "mod") name += "_";
  return name;
}

std::string SymbolTable::valid_name(const std::string& text) const {
  std::string name = symbol_name(text);
  while (name != text && (plain_names_.count(name) > 0 || bound_.count(name) > 0)) name += "_";
  return name;
}

DimRange SymbolTable::range_of(const std::string& name, const std::string& text) {
  const auto option = options_.dims.find(name);
  if (option == options_.dims.end()) {
    const auto seen = seen_.find(text);
    if (seen != seen_.end()) return seen->second;
    if (endless_.contains(text)) {
      is_endless_ = true;
      return {kEndlessSequence, kEndlessSequence};
    }
    notes_.push_back(fmt::format(
        "dimension \"{}\" is taken as 1; choose another with --dim {}=8 or --dim {}=1..8", name,
        name, name));
    return {1, 1};
  }
  const DimRange range = option->second;
  if (range.min < 0 || range.max < range.min) {
    throw CompileError(
        fmt::format("--dim {}={}..{} is no range of extents", name, range.min, range.max));
  }
  return range;
}

Dim SymbolTable::symbol(const std::string& text) {
  const std::string name = valid_name(text);
  const std::map<std::string, Dim>::const_iterator before = bound_.find(name);
  if (before != bound_.end()) return before->second;
  // A batch is asked for whatever --dim says: that is of inference alone.
  const DimRange range =
      name == batch_name_ ? DimRange{*options_.batch, *options_.batch} : range_of(name, text);
  const Dim value = range.min == range.max ? Dim(range.min) : Dim::symbol(name);
  if (range.min != range.max) ranges_[name] = range;
  bound_[name] = value;
  return value;
}

Dim SymbolTable::expression(const std::string& text) {
  const std::map<std::string, Dim>::const_iterator before = by_text_.find(text);
  if (before != by_text_.end()) return before->second;
  Dim value;
  const std::optional<Dim> parsed = is_name(text) ? std::nullopt : Dim::parse(text);
  std::set<std::string> symbols;
  if (parsed) parsed->collect_symbols(symbols);
  const bool is_expression =
      parsed && std::all_of(symbols.begin(), symbols.end(),
                            [&](const std::string& s) { return plain_names_.count(s) > 0; });
  if (is_expression) {
    std::map<std::string, Dim> replacement;
    for (const std::string& name : symbols) replacement[name] = symbol(name);
    value = parsed->substitute(replacement);
  } else {
    value = symbol(text);
  }
  by_text_[text] = value;
  return value;
}

Dim SymbolTable::input_dim(const OnnxDim& dim, const std::string& input, size_t axis) {
  const bool is_batch = options_.batch && !batch_seen_ && axis == 0;
  batch_seen_ = true;  // only the first dimension of all may be it
  if (is_batch && is_fixed(dim) && *dim.value != *options_.batch) {
    throw CompileError(
        fmt::format("input \"{}\" has a fixed batch of {}, a batch of {} was asked "
                    "for; export the model with a symbolic batch",
                    input, *dim.value, *options_.batch));
  }
  if (is_fixed(dim)) return Dim(*dim.value);
  const std::string text = text_of(dim, input, axis);
  if (is_batch) batch_name_ = valid_name(text);
  return is_named(dim) ? expression(text) : symbol(text);
}

std::optional<Dim> SymbolTable::declared_dim(const OnnxDim& dim) const {
  if (is_fixed(dim)) return Dim(*dim.value);
  if (!is_named(dim)) return std::nullopt;
  const std::map<std::string, Dim>::const_iterator known = by_text_.find(dim.symbol);
  return known == by_text_.end() ? std::nullopt : std::optional<Dim>(known->second);
}

void SymbolTable::check_options() const {
  for (const auto& [name, range] : options_.dims) {
    if (bound_.count(name) > 0) continue;
    std::string names;
    for (const auto& [bound, value] : bound_) names += (names.empty() ? "" : ", ") + bound;
    throw CompileError(
        fmt::format("--dim {}: the model has no such dimension; {}", name,
                    names.empty() ? "all of its dimensions are fixed" : "it has " + names));
  }
}

}  // namespace backcast
