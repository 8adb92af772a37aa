// What the classifiers and regressors of ai.onnx.ml share: scores and labels.
#pragma once

#include "frontend/node_context.h"

namespace backcast {

inline constexpr std::string_view kMlDomain = "ai.onnx.ml";
inline constexpr int64_t kNewestMlOpset = 5;

/// Input 0 as [examples, features] in floating point: f64 stays, all else becomes f32. A vector is
/// one example.
ValueId ml_features(NodeContext& n);

/// A list of numbers as a vector of `element`.
ValueId ml_vector(NodeContext& n, const std::vector<double>& values, ElementType element);
ValueId ml_vector(NodeContext& n, const std::vector<float>& values, ElementType element);

/// Scores [examples, classes] after the transform of that name: NONE, SOFTMAX, LOGISTIC or
/// SOFTMAX_ZERO; CompileError for others.
ValueId transformed(NodeContext& n, ValueId scores, const std::string& name);
/// The same for the one that the attribute post_transform names.
ValueId post_transform(NodeContext& n, ValueId scores);

/// The labels of the attribute `ints`; where `strings` has them, their numbers from 0, which is
/// told.
Ints class_labels(NodeContext& n, std::string_view ints, std::string_view strings);

/// Output 0: the labels at places [examples].
void set_labels(NodeContext& n, ValueId index, const Ints& labels);

/// Output 0: the label of the highest of scores [examples, classes], the first of equal ones.
void set_label_of_highest(NodeContext& n, ValueId scores, const Ints& labels);

/// Outputs 0 and 1, [examples] and [examples, classes], of one score per class: the label of the
/// highest (the first of equal ones), and the scores transformed.
void set_classes(NodeContext& n, ValueId scores, const Ints& labels);

/// Output 0 alone, of one score that decides between two classes: the second beyond the threshold.
void set_two_labels(NodeContext& n, ValueId score, const Ints& labels, double threshold);

/// Both outputs of one score that decides between two classes, [examples, 1]: the second beyond the
/// threshold. The first class's score is 1 less that of a probability, else its negative; LOGISTIC
/// takes both for logits.
void set_two_classes(NodeContext& n, ValueId score, const Ints& labels, double threshold,
                     bool is_probability);

}  // namespace backcast
