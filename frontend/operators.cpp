// Look-up in the rule tables and the check of attributes against a row.
#include "frontend/operators.h"

#include <algorithm>
#include <map>

#include "ir/graph/error.h"

namespace backcast {
namespace {

using Family = std::span<const OperatorRule> (*)();

constexpr Family kFamilies[] = {elementwise_rules,
                                activation_rules,
                                reduction_rules,
                                contraction_rules,
                                convolution_rules,
                                pooling_rules,
                                normalization_rules,
                                shape_rules,
                                slicing_rules,
                                creation_rules,
                                indexing_rules,
                                loss_rules,
                                selection_rules,
                                suppression_rules,
                                training_rules,
                                dropout_rules,
                                quantization_rules,
                                attention_rules,
                                attention_contrib_rules,
                                grouped_attention_rules,
                                fused_rules,
                                resample_rules,
                                geometry_rules,
                                roi_align_rules,
                                roi_pool_rules,
                                deform_conv_rules,
                                recurrent_rules,
                                control_rules,
                                spectrum_rules,
                                ml_linear_rules,
                                ml_tree_rules,
                                ml_ensemble_rules,
                                ml_svm_rules,
                                ml_encoder_rules,
                                quantization_contrib_rules,
                                packed_weights_rules,
                                sequence_rules,
                                random_rules};

const std::vector<OperatorRule>& all_rules() {
  static const std::vector<OperatorRule> rules = [] {
    std::vector<OperatorRule> result;
    for (const Family family : kFamilies) {
      const std::span<const OperatorRule> rows = family();
      result.insert(result.end(), rows.begin(), rows.end());
    }
    return result;
  }();
  return rules;
}

const std::multimap<std::string_view, const OperatorRule*>& rules_by_name() {
  static const std::multimap<std::string_view, const OperatorRule*> table = [] {
    std::multimap<std::string_view, const OperatorRule*> result;
    for (const OperatorRule& rule : all_rules()) result.emplace(rule.name, &rule);
    return result;
  }();
  return table;
}

OnnxAttribute::Kind kind_of(char letter) {
  using Kind = OnnxAttribute::Kind;
  switch (letter) {
    case 'i':
      return Kind::integer;
    case 'f':
      return Kind::real;
    case 's':
      return Kind::string;
    case 't':
      return Kind::tensor;
    case 'g':
      return Kind::graph;
    case 'I':
      return Kind::integers;
    case 'F':
      return Kind::reals;
    case 'S':
      return Kind::strings;
    default:
      BC_CHECK(false, "no attribute kind '{}'", letter);
  }
}

/// The kind that a row gives to an attribute; undefined when it is not in the row.
OnnxAttribute::Kind kind_in_row(std::string_view row, std::string_view name) {
  while (!row.empty()) {
    const std::string_view entry = row.substr(0, row.find(' '));
    row.remove_prefix(std::min(row.size(), entry.size() + 1));
    const size_t colon = entry.find(':');
    if (entry.substr(0, colon) == name) return kind_of(entry[colon + 1]);
  }
  return OnnxAttribute::Kind::undefined;
}

bool is_list(OnnxAttribute::Kind kind) {
  return kind == OnnxAttribute::Kind::integers || kind == OnnxAttribute::Kind::reals ||
         kind == OnnxAttribute::Kind::strings;
}

}  // namespace

const OperatorRule* find_rule(std::string_view domain, std::string_view name, int64_t opset) {
  const auto [first, last] = rules_by_name().equal_range(name);
  for (auto it = first; it != last; ++it) {
    const OperatorRule& rule = *it->second;
    if (rule.domain == domain && rule.since <= opset && opset <= rule.until) return &rule;
  }
  return nullptr;
}

std::string_view advice_for(std::string_view domain, std::string_view name) {
  constexpr std::string_view kString = "strings are not supported; leave this part to the caller";
  constexpr std::string_view kMap = "maps are not supported; export with tensors";
  static const std::map<std::pair<std::string_view, std::string_view>, std::string_view> advice = {
      {{"", "StringNormalizer"}, kString},
      {{"", "StringSplit"}, kString},
      {{"", "StringConcat"}, kString},
      {{"", "RegexFullMatch"}, kString},
      {{"ai.onnx.ml", "CategoryMapper"}, kString},
      {{"ai.onnx.ml", "CastMap"}, kMap},
      {{"ai.onnx.ml", "DictVectorizer"}, kMap},
  };
  const auto found = advice.find({domain, name});
  if (found != advice.end()) return found->second;
  if (domain != "com.microsoft" || is_known_operator(domain, name)) return {};
  return "ONNX Runtime's optimiser writes such operators; give the model that it was given, "
         "quantised without its fusions if need be";
}

bool is_known_operator(std::string_view domain, std::string_view name) {
  const auto [first, last] = rules_by_name().equal_range(name);
  return std::any_of(first, last, [&](const auto& e) { return e.second->domain == domain; });
}

void check_attributes(const OperatorRule& rule, const OnnxNode& node, const Loc& loc) {
  for (size_t i = 0; i < node.attributes.size(); ++i) {
    const OnnxAttribute& attribute = node.attributes[i];
    for (size_t j = 0; j < i; ++j) {
      if (node.attributes[j].name == attribute.name) {
        throw CompileError(loc, fmt::format("attribute \"{}\" is given twice", attribute.name));
      }
    }
    const OnnxAttribute::Kind wanted = kind_in_row(rule.attributes, attribute.name);
    if (wanted == OnnxAttribute::Kind::undefined) {
      throw CompileError(loc, fmt::format("attribute \"{}\" is not known for this operator at its "
                                          "opset; remove it or convert the model",
                                          attribute.name));
    }
    // An empty list may come without a kind.
    const bool empty_list = attribute.kind == OnnxAttribute::Kind::undefined && is_list(wanted);
    if (attribute.kind != wanted && !empty_list) {
      throw CompileError(loc, fmt::format("attribute \"{}\" has to be {} and is {}", attribute.name,
                                          kind_name(wanted), kind_name(attribute.kind)));
    }
  }
}

std::vector<SupportedOperator> supported_operators() {
  std::map<std::pair<std::string, std::string>, SupportedOperator> sorted;
  for (const OperatorRule& rule : all_rules()) {
    const std::pair<std::string, std::string> key(rule.domain, rule.name);
    const auto [it, fresh] =
        sorted.try_emplace(key, SupportedOperator{key.first, key.second, rule.since, rule.until});
    it->second.since = std::min(it->second.since, rule.since);
    it->second.until = std::max(it->second.until, rule.until);
    static_cast<void>(fresh);
  }
  std::vector<SupportedOperator> result;
  for (const auto& [key, entry] : sorted) result.push_back(entry);
  return result;
}

}  // namespace backcast
