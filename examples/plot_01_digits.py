"""
Digits in ten lines
===================

Learn to read handwritten digits from labels that say which digit an image is *not*.

Of every image only one wrong digit is known: "this is not a 7". Nothing else is given to the classifier, not even how
such labels came about: it finds out itself.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.metrics import accuracy_score

from wcll import ComplementaryClassifier
from wcll.labels import make_complementary

X, y = load_digits(return_X_y=True)
X = X / 16
ybar = make_complementary(y, random_state=0)  # for every image, one digit that it is not
model = ComplementaryClassifier(model="linear", budget=10_000, random_state=0).fit(X[:1200], ybar[:1200])

# %%
# The model estimates its accuracy from complementary labels of images that it has not seen. With true labels, which
# somebody who collects "not this" would not have, the estimate can be checked.

print(f"estimated without true labels: {model.score(X[1200:], ybar[1200:]):.2f}")
print(f"measured with them:            {accuracy_score(y[1200:], model.predict(X[1200:])):.2f}")

# %%
# What was tried and chosen, and what the estimate rests on:

print(model.report())

# %%
# Some of the images, each with the one thing that was said about it and with what the model makes of it.

figure, axes = plt.subplots(2, 6, figsize=(9, 4.4))
for i, axis in zip(range(1200, 1212), axes.flat, strict=True):
    axis.imshow(X[i].reshape(8, 8), cmap="gray_r")
    axis.set_title(f"not {ybar[i]}: {model.predict(X[i : i + 1])[0]}", fontsize=10)
    axis.axis("off")
figure.suptitle("What an annotator said (not ...) and what the model predicts")
figure.tight_layout()
plt.show()
