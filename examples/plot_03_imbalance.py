"""
Rare classes, and evaluation without true labels
================================================

Two of ten digits are five times rarer. What a model finds of them can be estimated from complementary labels alone,
with intervals that say when there are too few.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import recall_score

from wcll import ComplementaryClassifier
from wcll.labels import imbalance_counts, make_complementary, make_imbalance

X, y = load_digits(return_X_y=True)
X = X / 16
test = np.arange(len(y)) % 3 == 0
counts = imbalance_counts(n_majority=110, n_classes=10, p=5, minority=[0, 1])
rows = np.flatnonzero(~test)[make_imbalance(y[~test], counts, random_state=0)]
print(f"{len(rows)} images to learn from, by class: {np.bincount(y[rows])}")

# %%
# One label an image. A model that assumes uniform labels and is trained for a fixed time, beside the default, which
# chooses by labels that it has not seen and keeps classes from being given up early.

ybar = make_complementary(y[rows], random_state=0)
log = ComplementaryClassifier("log", lr=2e-3, max_epochs=375, random_state=0).fit(X[rows], ybar)
default = ComplementaryClassifier(model="linear", budget=12_000, random_state=0).fit(X[rows], ybar)
predicted = {"LOG, rate 2e-3": log.predict(X[test]), "the default": default.predict(X[test])}

# %%
# Measured with true labels, which only this page has. ``target_prior="balanced"``, which may be set after training,
# moves predictions to where all classes are alike: rare classes gain, others lose.

default.set_params(target_prior="balanced")
predicted["the default, for balanced classes"] = default.predict(X[test])
default.set_params(target_prior=None)
recalls = {name: recall_score(y[test], some, average=None) for name, some in predicted.items()}
for name, recall in recalls.items():
    print(f"{name:34} recall of all classes {recall.mean():.2f}, of the rare ones {recall[:2].mean():.2f}")

# %%
# Without true labels: 599 held-out labels tell accuracy fairly well, and next to nothing about one rare class. The
# verdicts say so.

found = default.evaluate(X[test], make_complementary(y[test], random_state=1))
print(found)

# %%
# The estimates with their 95 % intervals beside what is so.

figure, axis = plt.subplots(figsize=(8, 4))
estimates = {"accuracy": found.accuracy, **{f"recall of {k}": one for k, one in enumerate(found.recall)}}
truth = [(predicted["the default"] == y[test]).mean(), *recalls["the default"]]
place = np.arange(len(estimates))
values = np.array([(one.value, one.low, one.high) for one in estimates.values()])
errors = np.abs(values[:, 1:] - values[:, :1]).T
axis.errorbar(place, values[:, 0], yerr=errors, fmt="o", capsize=4, label="estimated from complementary labels, 95 %")
axis.plot(place, truth, "x", color="tab:red", label="measured with true labels")
axis.set_xticks(place, list(estimates), rotation=45, ha="right")
axis.set(ylim=(-0.05, 1.05), title="What 599 held-out complementary labels tell of a model")
axis.legend(loc="lower right")
figure.tight_layout()
plt.show()
