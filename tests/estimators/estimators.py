"""Fitted estimators: scikit-learn's own with default options, some of its pipelines, and boosted
trees of other libraries."""

import dataclasses
import warnings

import numpy as np
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.ensemble import (IsolationForest, RandomForestClassifier, RandomForestRegressor,
                              StackingClassifier, VotingClassifier)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier, LocalOutlierFactor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (KBinsDiscretizer, OneHotEncoder, OrdinalEncoder,
                                   PolynomialFeatures, StandardScaler)
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import all_estimators
from xgboost import XGBClassifier, XGBRegressor

EXAMPLES, FEATURES, CLASSES, KINDS = 200, 8, 3, 4
WORDS = np.array(["idle", "run", "walk"])


@dataclasses.dataclass
class Case:
    estimator: object
    x: np.ndarray  # f32[examples, features]
    y: np.ndarray

    def fit(self):
        """The estimator fitted; whatever it raises where the data do not suit it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.estimator.fit(self.x, self.y)


def data():
    x, y = make_classification(EXAMPLES, FEATURES, n_informative=5, n_classes=CLASSES,
                               random_state=1)
    return x.astype(np.float32), y


def with_kinds(x):
    """Two columns of categories in front."""
    kinds = np.random.default_rng(2).integers(0, KINDS, (len(x), 2))
    return np.concatenate([kinds, x], axis=1).astype(np.float32)


def plain():
    """Every estimator of scikit-learn that can be made without options."""
    x, y = data()
    targets = (2 * x[:, 0] + np.sin(x[:, 1]) + x[:, 2] * x[:, 3]).astype(np.float32)
    for kind in ("classifier", "regressor", "transformer", "cluster"):
        for name, make in all_estimators(type_filter=kind):
            counts = name in ("MultinomialNB", "ComplementNB", "CategoricalNB", "NMF")
            try:
                yield name, Case(make(), np.abs(x) if counts else x,
                                 targets if kind == "regressor" else y)
            except TypeError:  # needs options
                pass


def chosen():
    x, y = data()
    binary, words = np.minimum(y, 1), WORDS[y]
    targets = x[:, 0] + x[:, 1] * x[:, 2]
    for kernel in ("linear", "poly", "rbf", "sigmoid"):
        for what, labels in (("", y), ("_binary", binary)):
            yield f"SVC_{kernel}{what}", Case(SVC(kernel=kernel), x, labels)
            yield f"SVC_{kernel}{what}_probability", Case(SVC(kernel=kernel, probability=True), x,
                                                          labels)
        yield f"SVR_{kernel}", Case(SVR(kernel=kernel), x, targets)
        yield f"OneClassSVM_{kernel}", Case(OneClassSVM(kernel=kernel), x, y)
    yield "NuSVC_probability", Case(NuSVC(probability=True), x, y)
    for make in (LogisticRegression, DecisionTreeClassifier, SVC, RandomForestClassifier):
        yield f"{make.__name__}_words", Case(make(), x, words)
        yield f"{make.__name__}_binary", Case(make(), x, binary)
    for make in (IsolationForest, GaussianMixture, BayesianGaussianMixture):
        yield make.__name__, Case(make(), x, y)
    yield "LocalOutlierFactor", Case(LocalOutlierFactor(novelty=True), x, y)
    yield "KBinsDiscretizer_ordinal", Case(KBinsDiscretizer(encode="ordinal"), x, y)
    yield "trees_of_several", Case(RandomForestRegressor(20), x, np.stack([targets, x[:, 2]], 1))
    yield "scaled_svc", Case(make_pipeline(StandardScaler(), SVC()), x, y)
    yield "pca_mlp", Case(make_pipeline(StandardScaler(), PCA(4), MLPClassifier(max_iter=50)), x, y)
    yield "polynomial_ridge", Case(make_pipeline(PolynomialFeatures(3), Ridge()), x, targets)
    several = [("tree", DecisionTreeClassifier(max_depth=4)), ("line", LogisticRegression()),
               ("near", KNeighborsClassifier())]
    yield "voting_hard", Case(VotingClassifier(several), x, y)
    yield "voting_soft", Case(VotingClassifier(several, voting="soft"), x, y)
    yield "stacking", Case(StackingClassifier(several), x, y)
    yield "one_vs_rest", Case(OneVsRestClassifier(LogisticRegression()), x, y)
    yield "one_vs_one", Case(OneVsOneClassifier(LogisticRegression()), x, y)
    categories = [np.arange(KINDS)] * 2
    for name, encoder in (("one_hot", OneHotEncoder(categories=categories)),
                          ("ordinal", OrdinalEncoder(categories=categories))):
        columns = ColumnTransformer([("kinds", encoder, [0, 1]),
                                     ("numbers", StandardScaler(), list(range(2, 2 + FEATURES)))])
        yield name, Case(make_pipeline(columns, LogisticRegression()), with_kinds(x), y)


def boosted():
    x, y = data()
    binary, targets = np.minimum(y, 1), x[:, 0] + x[:, 1] * x[:, 2]
    some = {"n_estimators": 20}
    yield "XGBClassifier", Case(XGBClassifier(**some), x, y)
    yield "XGBClassifier_binary", Case(XGBClassifier(**some), x, binary)
    yield "XGBRegressor", Case(XGBRegressor(**some), x, targets)
    for booster in ("gbdt", "rf", "dart"):
        options = {**some, "boosting_type": booster, "verbosity": -1, "bagging_freq": 1,
                   "bagging_fraction": 0.7}
        yield f"LGBMClassifier_{booster}", Case(LGBMClassifier(**options), x, y)
        yield f"LGBMClassifier_{booster}_binary", Case(LGBMClassifier(**options), x, binary)
        yield f"LGBMRegressor_{booster}", Case(LGBMRegressor(**options), x, targets)


def all_cases():
    return dict([*plain(), *chosen(), *boosted()])
