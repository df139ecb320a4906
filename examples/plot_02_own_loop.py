"""
Your own network and training loop
==================================

The losses are plain functions of logits and labels: they fit into any loop that trains a ``torch.nn.Module``.
"""

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from torch import nn

import wcll
from wcll.labels import class_weights, make_complementary, transition_from_pi

torch.set_num_threads(1)  # steps as small as these are slower on several
X, y = load_digits(return_X_y=True)
X = torch.tensor(X / 16, dtype=torch.float32)

# %%
# These annotators name some digits more often than others, whatever the image shows. ``Q[y, j]`` is how often an image
# of the digit y is called "not j".

popularity = [8, 4, 4, 2, 2, 1, 1, 1, 1, 1]
Q = transition_from_pi(popularity)
ybar = torch.from_numpy(make_complementary(y, Q, n_labels=3, random_state=0))  # a mask: three digits it is not


# %%
# A network of your own, and an ordinary loop.


class Network(nn.Module):
    """Two layers."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 10))

    def forward(self, x):
        return self.layers(x)


def train(loss, epochs=60):
    """Train a new network with a loss; return its accuracy on TEST after every epoch, which only we look at."""
    torch.manual_seed(0)
    network, seen = Network(), []
    optimiser = torch.optim.Adam(network.parameters(), lr=2e-3, weight_decay=1e-4)
    for _ in range(epochs):
        for rows in torch.randperm(1200).split(100):
            optimiser.zero_grad()
            loss(network(X[rows]), ybar[rows]).backward()
            optimiser.step()
        with torch.no_grad():
            seen.append((network(X[1200:]).argmax(1).numpy() == y[1200:]).mean())
    return seen


# %%
# Three losses: LOG assumes that every wrong digit is named equally often, which is not so here; WCLL weighs labels by
# how frequent they are; forward correction is told Q. Losses are modules, too (``wcll.losses.LossModule``), which
# keep what they are given.

weights = class_weights("wcll", ybar[:1200].numpy(), n_classes=10)
losses = {
    "LOG": wcll.functional.log,
    "WCLL": wcll.losses.LossModule("wcll", weight=weights, pi=weights.pi),
    "forward, told Q": wcll.losses.LossModule("forward", transition=Q),
}
accuracy = {name: train(loss) for name, loss in losses.items()}
for name, seen in accuracy.items():
    print(f"{name:16} {seen[-1]:.2f}")

# %%
# Knowing how annotators choose is worth a lot where they do not choose evenly. Where it is not known, it can be
# estimated: :ref:`sphx_glr_gallery_plot_05_annotators.py`.

figure, axis = plt.subplots(figsize=(7, 4))
for name, seen in accuracy.items():
    axis.plot(range(1, len(seen) + 1), seen, label=name)
axis.set(xlabel="epoch", ylabel="accuracy on TEST", title="Three losses in one loop, labels with a bias", ylim=(0, 1))
axis.legend()
figure.tight_layout()
plt.show()
