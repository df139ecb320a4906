"""
Several labels a sample, and partial labels
===========================================

"Not this, and not that either": every further label of a sample leaves fewer classes. A set of candidates, one of
which is right (a *partial label*), says the same from the other side: it is none of the rest.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from wcll import ComplementaryClassifier
from wcll.labels import make_complementary

K = 8
X, y = make_blobs(3000, centers=K, n_features=10, cluster_std=8.0, random_state=0)
X = X / X.std()
train, test = slice(0, 500), slice(500, None)


def accuracy(labels):
    """Of a linear model on the test samples; forward correction takes sets of labels as they are."""
    model = ComplementaryClassifier("forward", lr=0.01, max_epochs=150, warm_up=30, random_state=0)
    return (model.fit(X[: len(labels)], labels).predict(X[test]) == y[test]).mean()


# %%
# One to seven labels of each of 500 samples. Several are a mask, with a column a class that is True for "not this";
# lists such as ``[[0, 3], [2], ...]`` do as well. Seven of eight are all wrong classes: an ordinary label.

numbers = [1, 2, 3, 5, 7]
found = {}
for number in numbers:
    ybar = make_complementary(y[train], n_labels=number, random_state=0)
    found[number] = accuracy(ybar)
    print(f"{number} labels a sample: {found[number]:.2f}")

# %%
# Partial labels: every sample comes with the true class and two random others, of which nobody says which is right.
# The complementary labels are all that are not among them.

rng = np.random.default_rng(0)
candidates = np.zeros((len(y), K), dtype=bool)
for i, label in enumerate(y):
    candidates[i, [label, *rng.choice(np.delete(np.arange(K), label), 2, replace=False)]] = True
partial = accuracy(~candidates[train])
print(f"one of three candidates: {partial:.2f}")

# %%
# The same number of labels may be spread over more samples or heaped on fewer. Here 500 labels, either one of each of
# 500 samples or five of each of 100.

heaped = accuracy(make_complementary(y[:100], n_labels=5, random_state=0))
print(f"500 samples with one label: {found[1]:.2f}")
print(f"100 samples with five:      {heaped:.2f}")

# %%
figure, axis = plt.subplots(figsize=(7, 4))
axis.plot(numbers, [found[number] for number in numbers], "o-", label="complementary labels")
axis.axhline(partial, color="tab:orange", linestyle="--", label="one of three candidates")
axis.set(xlabel="labels a sample", ylabel="accuracy", ylim=(0, 1), title="500 samples of eight classes")
axis.legend()
figure.tight_layout()
plt.show()
