"""
Medical images with groups
==========================

Several images of one patient are alike. If some of them are learnt from and others are used to choose and to judge, a
model that has learnt patients by heart looks better than it is. ``groups`` keeps each patient on one side.

The images are made here: small pictures of tissue with no spot, a smooth one or a ragged one. A reader who is asked
"what is it surely not?" answers quickly, also where the diagnosis itself is hard.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter

from wcll import ComplementaryClassifier
from wcll.labels import make_complementary

rng = np.random.default_rng(0)
SIDE, PATIENTS, IMAGES = 12, 240, 6
names = np.array(["normal", "benign", "malignant"])


def spot(kind):
    """Nothing, a disc, or a star."""
    rows, columns = np.mgrid[:SIDE, :SIDE] - (SIDE - 1) / 2 + rng.uniform(-1, 1, (2, 1, 1))
    radius, angle = np.hypot(rows, columns), np.arctan2(rows, columns)
    edge = 3.0 + (1.4 * np.cos(5 * angle + rng.uniform(0, 6)) if kind == 2 else 0)
    return np.zeros_like(radius) if kind == 0 else 1 / (1 + np.exp(2 * (radius - edge)))


kinds = rng.choice(3, PATIENTS, p=[0.6, 0.25, 0.15])  # of a patient: malignant ones are rare
images, y, patient = [], [], []
for number, kind in enumerate(kinds):
    tissue = gaussian_filter(rng.normal(size=(SIDE, SIDE)), 1.2) * 1.2  # a patient's own
    for _ in range(IMAGES):
        images.append(tissue + 1.2 * spot(kind) + rng.normal(scale=0.15, size=(SIDE, SIDE)))
        y.append(kind)
        patient.append(number)
X, y, patient = np.array(images).reshape(-1, SIDE * SIDE), np.array(y), np.array(patient)
ybar = make_complementary(y, random_state=0)

# %%
figure, axes = plt.subplots(3, 6, figsize=(8, 4.4))
for kind, row in enumerate(axes):
    first = np.flatnonzero(y == kind)[:: IMAGES // 2][:6]
    for i, axis in zip(first, row, strict=True):
        axis.imshow(X[i].reshape(SIDE, SIDE), cmap="gray")
        axis.set_title(f"patient {patient[i]}", fontsize=8)
        axis.axis("off")
    row[0].text(-0.25, 0.5, names[kind], transform=row[0].transAxes, rotation=90, va="center", ha="center")
figure.suptitle("Two images a patient, three patients a diagnosis")
figure.tight_layout()
plt.show()

# %%
# New patients are what a model is for, so some are put aside altogether.

new = patient >= 180
known = ~new
settings = {"model": "mlp", "transition": "uniform", "budget": 6000, "random_state": 0}
with_groups = ComplementaryClassifier(**settings).fit(X[known], names[ybar[known]], groups=patient[known])
alone = ComplementaryClassifier(**settings).fit(X[known], names[ybar[known]])
for name, one in {"other patients' images": with_groups, "any other images": alone}.items():
    estimate = one.estimate_.accuracy
    print(f"judged by labels of {name}: accuracy {estimate.value:.2f} ({estimate.low:.2f} to {estimate.high:.2f})")

# %%
# And what is so, for new patients, with true diagnoses that only this page knows:

for name, one in {"chosen with groups": with_groups, "chosen without": alone}.items():
    predicted = one.predict(X[new])
    recalls = [f"{kind} {(predicted[y[new] == k] == kind).mean():.2f}" for k, kind in enumerate(names)]
    print(f"{name:20} accuracy {(predicted == names[y[new]]).mean():.2f}, recall: {', '.join(recalls)}")

# %%
# Images of a patient may also be read together: the mean of their probabilities says more than each alone.

probabilities = with_groups.predict_proba(X[new]).reshape(-1, IMAGES, 3).mean(axis=1)
by_patient = with_groups.classes_[probabilities.argmax(axis=1)]
print(f"accuracy by patient: {(by_patient == names[kinds[180:]]).mean():.2f}")
