// The table of import rules: one row per ONNX operator and range of opsets.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/node_context.h"

namespace backcast {

inline constexpr int64_t kOldestOpset = 7;
inline constexpr int64_t kNewestOpset = 27;
/// Operators that ONNX Runtime's tools write beside those of ONNX.
inline constexpr std::string_view kMicrosoftDomain = "com.microsoft";
inline constexpr int64_t kMicrosoftOpset = 1;

struct OperatorRule {
  std::string_view name;
  int64_t since = kOldestOpset;  // opsets of the domain, both inclusive
  int64_t until = kNewestOpset;
  int64_t min_inputs = 1;
  int64_t max_inputs = 1;  // -1: any number
  void (*import)(NodeContext&) = nullptr;
  /// Attributes and their kinds, "axis:i perm:I mode:s". i, f, s, t, g are an integer, a float, a
  /// string, a tensor, a graph; capitals are lists of them.
  std::string_view attributes = "";
  std::string_view domain = "";
  /// Whether constants of 4 bits may be inputs. They arrive widened to 8, so a rule that asks
  /// what an element can hold must not take them.
  bool narrow_constants = false;
  /// Whether inputs may be sequences, which are tuples whose length import knows.
  bool sequences = false;
};

/// The rule for an operator at an opset; null when there is none.
const OperatorRule* find_rule(std::string_view domain, std::string_view name, int64_t opset);

/// What to do instead of using an operator that has no rule; empty when there is no advice.
std::string_view advice_for(std::string_view domain, std::string_view name);

/// Whether any opset of the operator is supported.
bool is_known_operator(std::string_view domain, std::string_view name);

/// CompileError unless every attribute is one of the rule's and of its kind.
void check_attributes(const OperatorRule& rule, const OnnxNode& node, const Loc& loc);

struct SupportedOperator {
  std::string domain, name;
  int64_t since, until;
};
/// Every supported operator, sorted, with the union of its opset ranges.
std::vector<SupportedOperator> supported_operators();

// The families, one file of frontend/rules each.
std::span<const OperatorRule> elementwise_rules();
std::span<const OperatorRule> activation_rules();
std::span<const OperatorRule> reduction_rules();
std::span<const OperatorRule> contraction_rules();
std::span<const OperatorRule> convolution_rules();
std::span<const OperatorRule> pooling_rules();
std::span<const OperatorRule> normalization_rules();
std::span<const OperatorRule> shape_rules();
std::span<const OperatorRule> slicing_rules();
std::span<const OperatorRule> sequence_rules();
std::span<const OperatorRule> creation_rules();
std::span<const OperatorRule> indexing_rules();
std::span<const OperatorRule> selection_rules();
std::span<const OperatorRule> suppression_rules();
std::span<const OperatorRule> loss_rules();
std::span<const OperatorRule> training_rules();
std::span<const OperatorRule> dropout_rules();
std::span<const OperatorRule> random_rules();
std::span<const OperatorRule> quantization_rules();
std::span<const OperatorRule> quantization_contrib_rules();
std::span<const OperatorRule> packed_weights_rules();
std::span<const OperatorRule> attention_rules();
std::span<const OperatorRule> attention_contrib_rules();
std::span<const OperatorRule> grouped_attention_rules();
std::span<const OperatorRule> fused_rules();
std::span<const OperatorRule> resample_rules();
std::span<const OperatorRule> geometry_rules();
std::span<const OperatorRule> roi_align_rules();
std::span<const OperatorRule> roi_pool_rules();
std::span<const OperatorRule> deform_conv_rules();
std::span<const OperatorRule> recurrent_rules();
std::span<const OperatorRule> spectrum_rules();
std::span<const OperatorRule> ml_linear_rules();
std::span<const OperatorRule> ml_tree_rules();
std::span<const OperatorRule> ml_ensemble_rules();
std::span<const OperatorRule> ml_svm_rules();
std::span<const OperatorRule> ml_encoder_rules();
std::span<const OperatorRule> control_rules();  // imported by the graph importer itself

}  // namespace backcast
