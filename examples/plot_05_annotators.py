"""
Annotators with a bias, and Q from repeated labels
==================================================

Annotators have habits: of a cat they may say "not a car" more often than "not a dog". Three labels a sample tell
these habits without one true label.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from wcll import ComplementaryClassifier, LabelWarning
from wcll.labels import (
    FAMILIES,
    biased_transition,
    make_complementary,
    transition_from_repeated,
    uniform_transition,
)
from wcll.transition_estimation import transition_with_model

names = ["cat", "dog", "car", "lorry", "tree"]
K = len(names)
Q = biased_transition(K, strength="strong", random_state=1)
X, y = make_blobs(9000, centers=K, n_features=10, cluster_std=5.0, random_state=3)
X = X / X.std()
train, test = slice(0, 6000), slice(6000, None)

# %%
# Three annotators label the same images, each by themselves. What is known of them is their labels alone.

ybar = np.stack([make_complementary(y[train], Q, random_state=annotator) for annotator in range(3)], axis=1)
repeated = transition_from_repeated(ybar, K)
print(repeated.reason)

# %%
# With one label a sample, nothing is repeated. A model helps then: what it believes of a sample, from labels of other
# samples, is set against the label.

one_each = ybar[:, 0]
with_model = transition_with_model(X[train], one_each, random_state=0)


def off(matrix):
    """How far rows are off the truth: the mean share of labels that would have to move."""
    return np.abs(matrix - Q).sum(axis=1).mean() / 2


for name, matrix in {
    "uniform": uniform_transition(K),
    "popularity, from counts": FAMILIES["popularity"].fit(np.bincount(one_each, minlength=K)).transition,
    "three labels a sample": repeated.transition,
    "one label and a model": with_model.transition,
}.items():
    print(f"{name:24} {100 * off(matrix):.0f} % of labels off")

# %%
figure, axes = plt.subplots(1, 3, figsize=(10, 4.2), sharey=True, layout="constrained")
panels = {
    "the truth": Q,
    "from three labels a sample": repeated.transition,
    "from one and a model": with_model.transition,
}
for axis, (title, matrix) in zip(axes, panels.items(), strict=True):
    axis.imshow(matrix, vmin=0, vmax=Q.max(), cmap="Blues")
    axis.set_title(title, fontsize=10)
    axis.set_xticks(range(K), names, rotation=45)
    axis.set_xlabel("not ...")
    axis.set_yticks(range(K), names)
    for (i, j), share in np.ndenumerate(matrix):
        colour = "white" if share > 0.6 * Q.max() else "black"
        axis.text(j, i, f"{100 * share:.0f}", ha="center", va="center", fontsize=8, color=colour)
figure.suptitle("Q: of a class (row), how often each label is said, in %")
plt.show()

# %%
# What that is worth. All of them learn from the same single labels; they are told different things about them. A Q that
# is nearer to the truth is not always the better one: what counts is which classes it takes for each other. So look at
# held-out labels before an estimate is preferred to a simple family, as the default does.

told = {"uniform": None, "popularity": "popularity", "with a model": with_model, "repeated": repeated, "the truth": Q}
for name, transition in told.items():
    model = ComplementaryClassifier("forward", transition=transition, lr=0.01, max_epochs=30, warm_up=4, random_state=0)
    with warnings.catch_warnings(action="ignore", category=LabelWarning):  # of uniform labels, which these are not
        model.fit(X[train], one_each)
    print(f"{name:14} {(model.predict(X[test]) == y[test]).mean():.2f}")
