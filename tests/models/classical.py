"""A model of the operators that scikit-learn's and boosting libraries' converters write."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from graph_builder import GraphBuilder

EXAMPLES, FEATURES, KINDS = 8, 6, 5


def vectors(g, width, per_class):
    """Support vectors and coefficients as attributes. Those of a pair of classes add up to zero."""
    rows = []
    for row in range(len(per_class) - 1):
        blocks = []
        for own, count in enumerate(per_class):
            weights = g.rng.uniform(0.5, 1.5, count)
            blocks.append(weights / weights.sum() * (1 if row >= own else -1))
        rows.append(np.concatenate(blocks))
    return {"support_vectors": g.rng.standard_normal(sum(per_class) * width).tolist(),
            "coefficients": (4 * np.concatenate(rows)).tolist()}


def support_vector_machines(g, x, width):
    """Classifiers with every kernel, with probabilities or votes alone, and regressors."""
    def classifier(name, per_class, with_probabilities, **attributes):
        classes = len(per_class)
        pairs = classes * (classes - 1) // 2
        if with_probabilities:
            attributes.update(prob_a=g.rng.uniform(-2, -0.5, pairs).tolist(),
                              prob_b=g.rng.uniform(-0.5, 0.5, pairs).tolist())
        label, scores = g.classical(
            "SVMClassifier", name, [x], [f"{name}_label", f"{name}_scores"],
            vectors_per_class=per_class, rho=g.rng.uniform(-0.1, 0.1, pairs).tolist(),
            classlabels_ints=list(range(3, 3 + classes)),
            **vectors(g, width, per_class), **attributes)
        g.output(label, [EXAMPLES], TensorProto.INT64)
        columns = classes if with_probabilities else max(pairs, 2)
        g.output(scores, [EXAMPLES, columns])

    classifier("rbf", [5, 3, 4, 6], True, kernel_type="RBF", kernel_params=[0.02, 0.0, 0.0])
    classifier("poly", [4, 2, 5], False, kernel_type="POLY", kernel_params=[0.1, 0.5, 3.0],
               post_transform="SOFTMAX")
    classifier("linear", [6, 4], False, kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0])
    classifier("sigmoid", [3, 3], True, kernel_type="SIGMOID", kernel_params=[0.1, -0.2, 0.0])
    for name, kernel, one_class in (("fit", "RBF", 0), ("plane", "LINEAR", 0), ("novel", "RBF", 1)):
        y = g.classical("SVMRegressor", name, [x], name, kernel_type=kernel, n_supports=9,
                        kernel_params=[0.03, 0.0, 0.0], rho=[0.0], one_class=one_class,
                        **vectors(g, width, [4, 5]))
        g.output(y, [EXAMPLES, 1])


def ensemble(g, x, width):
    """Trees of opset 5: three levels of every test, one of them for a set, and one leaf alone."""
    modes = [0, 3, 6, 2, 1, 4, 0]  # <=, >, member, >=, <, =, <=
    splits = [0.1, -0.2, 0.0, 0.3, 0.5, 1.0, 0.0]
    true_ids, true_leafs = [1, 3, 4, 0, 2, 3, 5], [0, 0, 0, 1, 1, 1, 1]
    false_ids, false_leafs = [2, 5, 1, 1, 3, 4, 5], [0, 0, 1, 1, 1, 1, 1]

    def tensor(values, kind=np.float32):
        return numpy_helper.from_array(np.array(values, kind), "")

    y = g.classical(
        "TreeEnsemble", "trees", [x], "trees", aggregate_function=1, n_targets=2, post_transform=0,
        tree_roots=[0, 6], nodes_modes=tensor(modes, np.uint8), nodes_splits=tensor(splits),
        nodes_featureids=[0, 1, width - 3, 2, 3, 8, 4], nodes_truenodeids=true_ids,
        nodes_trueleafs=true_leafs, nodes_falsenodeids=false_ids, nodes_falseleafs=false_leafs,
        membership_values=tensor([2.0, 5.0, 1.0, np.nan]), leaf_targetids=[0, 1, 0, 1, 1, 0],
        leaf_weights=tensor(g.rng.standard_normal(6)))
    g.output(y, [EXAMPLES, 2])


def classical():
    g = GraphBuilder("classical", seed=32)
    numbers = g.input("numbers", [EXAMPLES, FEATURES])
    kinds = g.node("Cast", "as_category", [g.input("kinds", [EXAMPLES, 2], TensorProto.INT32)],
                   to=TensorProto.INT64)
    scaled = g.classical("Scaler", "scaled", [numbers], offset=g.rng.uniform(-1, 1, 6).tolist(),
                         scale=g.rng.uniform(0.5, 2, 6).tolist())
    chosen = g.classical("OneHotEncoder", "chosen", [kinds], cats_int64s=[7, 0, 3, 9, 4])
    flat = g.node("Reshape", "flat", [chosen, g.ints("flat.shape", [EXAMPLES, 2 * KINDS])])
    codes = g.classical(
        "LabelEncoder", "codes", [kinds], keys_tensor=helper.make_tensor(
            "", TensorProto.INT64, [4], [1, 8, 5, 0]),
        values_tensor=helper.make_tensor("", TensorProto.FLOAT, [4], [2.0, 0.5, 5.0, -1.0]),
        default_tensor=helper.make_tensor("", TensorProto.FLOAT, [1], [0.75]))
    width = FEATURES + 2 * KINDS + 3
    x = g.classical("FeatureVectorizer", "features", [scaled, flat, codes],
                    inputdimensions=[FEATURES, 2 * KINDS, 3])
    support_vector_machines(g, x, width)
    ensemble(g, x, width)
    return g.model()
