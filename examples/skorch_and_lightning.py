"""
In skorch and in Lightning
==========================

The losses are torch modules, so frameworks that train torch modules take them. This page is text: neither framework is
a dependency, and nothing here is run.
"""

# %%
# skorch
# ------
#
# A criterion gets the outputs and the targets; targets are complementary labels. What a loss needs beside them is an
# argument of its module, which skorch passes on as ``criterion__...``. ``scoring`` must not be accuracy: it would take
# "not this" for "this". ``train_split`` with held-out complementary labels is fine, as its loss is the loss of such
# labels.

import lightning
import torch
from skorch import NeuralNetClassifier

import wcll
from wcll.evaluation import label_free_accuracy
from wcll.labels import class_weights
from wcll.losses import LossModule


def with_skorch(X, ybar, Q, n_classes):
    """Two classifiers for complementary labels, as scikit-learn has them."""
    network = torch.nn.Linear(X.shape[1], n_classes)
    forward = NeuralNetClassifier(
        network,
        criterion=LossModule,
        criterion__loss="forward",
        criterion__transition=Q,
        optimizer=torch.optim.Adam,
        lr=2e-3,
        max_epochs=60,
        classes=range(n_classes),
        callbacks__valid_acc=None,  # it would compare predictions with complementary labels
    )
    weights = class_weights("wcll", ybar, n_classes=n_classes)
    weighted = NeuralNetClassifier(
        network,
        criterion=LossModule,
        criterion__loss="wcll",
        criterion__weight=weights,
        criterion__pi=weights.pi,
        optimizer=torch.optim.Adam,
        classes=range(n_classes),
        callbacks__valid_acc=None,
    )
    return forward.fit(X, ybar), weighted.fit(X, ybar)


# %%
# Lightning
# ---------
#
# A step computes the loss of a batch of samples and complementary labels. What may be logged without true labels is
# that loss, and the estimate of accuracy that ``wcll.evaluation.label_free_accuracy`` makes of held-out labels.


class Complementary(lightning.LightningModule):
    """Any network, trained by forward correction."""

    def __init__(self, network, Q, lr=2e-3):
        super().__init__()
        self.network, self.Q, self.lr = network, Q, lr

    def training_step(self, batch, _):
        x, ybar = batch
        loss = wcll.functional.forward(self.network(x), ybar, transition=self.Q)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, _):
        x, ybar = batch
        predicted = self.network(x).argmax(-1)
        self.log("estimated accuracy", label_free_accuracy(ybar.cpu(), predicted.cpu(), self.Q)[0])

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


# %%
# Then ``lightning.Trainer(max_epochs=60).fit(Complementary(network, Q), train_loader, valid_loader)``.
