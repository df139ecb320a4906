"""
A data frame with Pipeline and GridSearchCV
===========================================

``ComplementaryClassifier`` is a scikit-learn estimator: it takes names as labels, fits into pipelines, and is chosen
among by its own ``score``, which needs no true label.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from wcll import ComplementaryClassifier, LabelWarning
from wcll.labels import make_complementary

# %%
# Trees by the road: height, girth, and the colour of the bark. Volunteers named one kind that a tree is not.

kinds = np.array(["beech", "birch", "fir", "oak"])
rng = np.random.default_rng(0)
y = rng.integers(0, 4, 4000)
trees = pd.DataFrame(
    {
        "height_m": rng.normal(np.array([22, 17, 28, 20])[y], 4),
        "girth_cm": rng.normal(np.array([180, 90, 150, 240])[y], 45),
        "bark": np.where(rng.random(4000) < 0.8, np.array(["grey", "white", "brown", "brown"])[y], "grey"),
    }
)
trees["not_kind"] = kinds[make_complementary(y, random_state=0)]
print(trees.head())

# %%
# Columns are prepared in the pipeline, so that they are prepared in the same way for new trees. Rate and loss are
# chosen by cross-validation. ``score`` estimates accuracy from complementary labels; ``scoring="accuracy"`` would take
# "not this" for "this" and choose the worst model.

columns = make_column_transformer((StandardScaler(), ["height_m", "girth_cm"]), (OneHotEncoder(), ["bark"]))
pipeline = make_pipeline(columns, ComplementaryClassifier("forward", max_epochs=40, random_state=0))
grid = {
    "complementaryclassifier__loss": ["forward", "exp", "l-w"],
    "complementaryclassifier__lr": [1e-4, 1e-3, 1e-2],
}
known, new, _, y_new = train_test_split(trees, y, test_size=1000, random_state=0)
with warnings.catch_warnings(action="ignore", category=LabelWarning):  # models that have hardly learnt doubt Q
    search = GridSearchCV(pipeline, grid, cv=3).fit(known, known["not_kind"])
print(search.best_params_)

# %%
# Each of the nine, with its score and the accuracy that it really has on new trees.

figure, axis = plt.subplots(figsize=(8, 4.5))
for estimated, parameters in zip(search.cv_results_["mean_test_score"], search.cv_results_["params"], strict=True):
    model = clone(pipeline).set_params(**parameters).fit(known, known["not_kind"])
    measured = (model.predict(new) == kinds[y_new]).mean()
    loss, rate = parameters.values()
    marker = {"forward": "o", "exp": "^", "l-w": "s"}[loss]
    colour = {1e-4: "tab:blue", 1e-3: "tab:orange", 1e-2: "tab:green"}[rate]
    axis.scatter(estimated, measured, marker=marker, color=colour, alpha=0.7, label=f"{loss}, rate {rate:g}")
axis.set(
    xlabel="score: estimated from complementary labels (3 folds)",
    ylabel="measured with true labels",
    title="Choosing among nine settings without a true label",
)
axis.legend(loc="upper left", fontsize=8)
figure.tight_layout()
plt.show()

# %%
# The best of them on new trees, as names:

print(f"{(search.predict(new) == kinds[y_new]).mean():.2f} measured;", search.predict(new)[:4])
