#include "passes/train/trainable.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <regex>

#include "ir/graph/error.h"
#include "ir/ops/ops.h"

namespace backcast {
namespace {

std::string listing(const std::vector<TrainableCandidate>& candidates) {
  constexpr size_t kMost = 40;
  std::string text;
  for (size_t i = 0; i < candidates.size() && i < kMost; ++i) {
    text += fmt::format("\n  {} {}", candidates[i].name, to_string(candidates[i].type));
  }
  if (candidates.size() > kMost) text += fmt::format("\n  and {} more", candidates.size() - kMost);
  return text.empty() ? " (none)" : text;
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  const std::from_chars_result end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end.ec != std::errc() || end.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

/// `name[axis,begin:end]` when the text has that form and `name` is a candidate.
std::optional<LiftedTensor> parse_range(const std::string& text,
                                        const std::vector<TrainableCandidate>& candidates) {
  const size_t open = text.rfind('[');
  if (open == std::string::npos || text.back() != ']') return std::nullopt;
  const std::string inside = text.substr(open + 1, text.size() - open - 2);
  const size_t comma = inside.find(','), colon = inside.find(':');
  if (comma == std::string::npos || colon == std::string::npos || colon < comma) {
    return std::nullopt;
  }
  const std::optional<int64_t> axis = number(trimmed(inside.substr(0, comma)));
  const std::optional<int64_t> begin = number(trimmed(inside.substr(comma + 1, colon - comma - 1)));
  const std::optional<int64_t> end = number(trimmed(inside.substr(colon + 1)));
  if (!axis || !begin || !end) return std::nullopt;
  const std::string name = text.substr(0, open);
  for (const TrainableCandidate& candidate : candidates) {
    if (candidate.name != name) continue;
    const bool fits = *axis >= 0 && *axis < candidate.type.rank() && *begin >= 0 && *begin < *end &&
                      *end <= candidate.type.shape[static_cast<size_t>(*axis)].constant();
    if (!fits) {
      throw CompileError(fmt::format("--trainable {}: the range does not fit {} {}", text, name,
                                     to_string(candidate.type)));
    }
    if (*begin == 0 && *end == candidate.type.shape[static_cast<size_t>(*axis)].constant()) {
      return LiftedTensor{name};
    }
    return LiftedTensor{name, *axis, *begin, *end};
  }
  throw CompileError(fmt::format("--trainable {}: \"{}\" is not among the trainable tensors:{}",
                                 text, name, listing(candidates)));
}

/// Which candidates an expression without a range names.
std::vector<bool> matches(const std::string& text,
                          const std::vector<TrainableCandidate>& candidates) {
  std::vector<bool> result(candidates.size(), false);
  std::optional<int64_t> layers;
  if (text.starts_with("last:")) {
    const std::optional<int64_t> count = number(text.substr(5));
    if (!count || *count < 1) {
      throw CompileError(
          fmt::format("--trainable {}: write last:N with a number of layers from 1 on", text));
    }
    int64_t last = -1;
    for (const TrainableCandidate& c : candidates) last = std::max(last, c.layer);
    layers = last + 1 - *count;
  }
  const bool is_word = text == "all" || text == "bias" || text == "norm" || layers;
  std::optional<std::regex> expression;
  try {
    if (!is_word) expression.emplace(text, std::regex::ECMAScript);
  } catch (const std::regex_error& error) {
    throw CompileError(
        fmt::format("--trainable {}: no regular expression: {}", text, error.what()));
  }
  const bool is_name = std::any_of(candidates.begin(), candidates.end(),
                                   [&](const TrainableCandidate& c) { return c.name == text; });
  for (size_t i = 0; i < candidates.size(); ++i) {
    const TrainableCandidate& c = candidates[i];
    result[i] = is_name                    ? c.name == text
                : is_word && c.is_number() ? false
                : text == "all"            ? true
                : text == "bias"           ? c.is_bias
                : text == "norm"           ? c.is_norm
                : layers                   ? c.layer >= *layers
                                           : std::regex_search(c.name, *expression);
  }
  return result;
}

}  // namespace

std::vector<LiftedTensor> select_trainable(const std::vector<TrainableCandidate>& candidates,
                                           const TrainableSpec& spec) {
  const std::vector<std::string> all = {"all"};
  std::map<std::string, LiftedTensor> chosen;
  for (const std::string& text : spec.expressions.empty() ? all : spec.expressions) {
    if (const std::optional<LiftedTensor> range = parse_range(text, candidates)) {
      const auto [place, is_new] = chosen.emplace(range->name, *range);
      if (!is_new && place->second.axis < 0) continue;  // all of it already
      if (range->axis < 0) place->second = *range;
      if (!(place->second == *range)) {
        throw CompileError(
            fmt::format("--trainable {}: another range of \"{}\" is chosen already; "
                        "one per tensor is possible",
                        text, range->name));
      }
      continue;
    }
    const std::vector<bool> hit = matches(text, candidates);
    if (std::find(hit.begin(), hit.end(), true) == hit.end()) {
      const bool numbers = std::ranges::any_of(candidates, &TrainableCandidate::is_number);
      throw CompileError(fmt::format(
          "--trainable {}: matches none of the trainable tensors{}:{}", text,
          numbers ? ", of which those without axes have to be named" : "", listing(candidates)));
    }
    for (size_t i = 0; i < hit.size(); ++i) {
      if (hit[i]) chosen[candidates[i].name] = {candidates[i].name};
    }
  }
  std::vector<LiftedTensor> result;
  for (const TrainableCandidate& candidate : candidates) {
    const std::map<std::string, LiftedTensor>::const_iterator found = chosen.find(candidate.name);
    if (found != chosen.end()) result.push_back(found->second);
  }
  return result;
}

std::vector<std::string> parse_trainable(const std::string& text) {
  std::vector<std::string> result;
  std::string current;
  int depth = 0;
  bool comment = false;
  const auto end_expression = [&] {
    const std::string expression = trimmed(current);
    if (!expression.empty()) result.push_back(expression);
    current.clear();
    depth = 0;
  };
  for (char c : text) {
    if (c == '\n') {
      end_expression();
      comment = false;
    } else if (comment || c == '#') {
      comment = true;
    } else if (c == ',' && depth == 0) {
      end_expression();
    } else {
      if (c == '[' || c == '{' || c == '(') ++depth;
      if ((c == ']' || c == '}' || c == ')') && depth > 0) --depth;
      current += c;
    }
  }
  end_expression();
  return result;
}

}  // namespace backcast
