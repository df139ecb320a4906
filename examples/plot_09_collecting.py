"""
How to collect labels
=====================

Before anybody is asked: which question is worth more? Ordinary labels, one complementary label, several of them, or
the same number of complementary labels on more samples? A simulation with numbers of your own answers it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from wcll import ComplementaryClassifier
from wcll.labels import biased_transition, costs_if_wrong, make_complementary, uniform_transition
from wcll.labels.diagnostics import label_worth

K = 6

# %%
# **What a label is worth in bits.** An ordinary label of K equally frequent classes tells log2 K bits. A complementary
# one tells little; one that is chosen with a habit that we know tells more, because it depends on the class.

even = np.ones(K)
habits = biased_transition(K, strength="strong", random_state=0)
for name, Q in {"uniform": uniform_transition(K), "strong habits": habits}.items():
    worth = label_worth(Q, even)
    print(
        f"{name:14} {worth.information:.2f} of {worth.entropy:.2f} bits: {worth.labels_for_one:.1f} labels weigh as one"
    )

# %%
# **What a label costs.** Suppose that it takes 8 seconds to find the right one of six classes, and 2 seconds to say one
# that is surely wrong (measure your own). The same hours then buy four times as many complementary labels.

SECONDS = {"ordinary": 8.0, "not this": 2.0}
BUDGETS = [600, 2000, 6000, 20_000]  # seconds

X, y = make_blobs(16_000, centers=K, n_features=12, cluster_std=11.0, random_state=1)
X = X / X.std()
train, test = slice(0, 10_000), slice(10_000, None)


def accuracy(labels, **told):
    """Of a linear model with forward correction, on new samples."""
    model = ComplementaryClassifier("forward", lr=0.01, max_epochs=40, warm_up=5, random_state=0, **told)
    return (model.fit(X[: len(labels)], labels).predict(X[test]) == y[test]).mean()


plans = {"ordinary labels": [], "one label a sample": [], "three labels a sample": []}
for seconds in BUDGETS:
    n = int(seconds / SECONDS["ordinary"])
    plans["ordinary labels"].append(accuracy(make_complementary(y[:n], n_labels=K - 1, random_state=0)))
    n = int(seconds / SECONDS["not this"])
    plans["one label a sample"].append(accuracy(make_complementary(y[:n], random_state=0)))
    several = make_complementary(y[: n // 3], n_labels=3, random_state=0)
    plans["three labels a sample"].append(accuracy(several))
for name, found in plans.items():
    print(f"{name:22}", *(f"{value:.2f}" for value in found))

# %%
# (All K - 1 wrong classes named is an ordinary label.) Which curve is on top depends on the seconds above, on K and on
# how well classes can be told apart: change them to yours. Where annotators can give the true class nearly as fast,
# ordinary labels win; complementary ones are for questions that are slow, delicate or beyond an annotator.

figure, axis = plt.subplots(figsize=(7, 4))
for (name, found), style in zip(plans.items(), ("s--", "o-", "^-"), strict=True):
    axis.semilogx(BUDGETS, found, style, label=name)
axis.set(xlabel="seconds of annotators' time", ylabel="accuracy", ylim=(0, 1), title="What the same time buys")
axis.legend(loc="lower right")
figure.tight_layout()
plt.show()

# %%
# **What a wrong belief costs**: the accuracy that is left, in the limit of very many labels, if rows are assumed and
# columns are so. How annotators choose can be estimated instead of assumed: from labels and a model
# (:ref:`sphx_glr_gallery_plot_05_annotators.py`), or from samples with their true class.

table = costs_if_wrong(1000 * habits.mean(axis=0), others={"habits": habits})
width = max(map(len, table.names))
print(" " * width, *(f"{name:>{width}}" for name in table.names))
for name, row in zip(table.names, table.accuracy, strict=True):
    print(f"{name:{width}}", *(f"{value:{width}.2f}" for value in row))
