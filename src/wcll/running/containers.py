"""Who sees what: training and selection see complementary labels, evaluation sees true ones, nobody sees both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from wcll._validation import BoolArray, FloatArray, IntArray
from wcll.labels import Belief
from wcll.labels.families import EstimatedTransition


@dataclass(frozen=True, eq=False)
class Weak:
    """What training and selection get: images and complementary labels."""

    x: Tensor
    ybar: IntArray | BoolArray  #: class indices, or a mask where samples have several
    groups: IntArray | None = None  #: such as patients, where there are such


@dataclass(frozen=True)
class Ordinary:
    """What the upper limit learns from: the training images with their true labels. No other method gets it."""

    x: Tensor
    y: IntArray


@dataclass(frozen=True)
class Clean:
    """What evaluation gets: test images and true labels. Training is given its images alone."""

    x: Tensor
    y: IntArray


@dataclass(frozen=True)
class Declared:
    """What the experimenter declares of the labels, for methods that are told: class sizes and the true Q.

    Of several labels that are drawn without replacement Q has the inclusion shares.
    """

    sizes: IntArray
    transition: FloatArray | None  #: None: nobody knows it
    of_pairs: EstimatedTransition | None = None  #: Q as a few true pairs tell it, for methods that are told these


@dataclass(frozen=True)
class Task:
    """One draw of the data: what each party gets of it."""

    train: Weak
    valid: Weak | None
    test: Clean
    limit: Ordinary | None  #: only for the upper limit
    judge: Belief | None  #: what selection believes of the held-out labels; None: what each run does
    declared: Declared
    scale: float  #: samples are kept as stored; divided by this they are numbers from 0 to 1 (for images)
    data: dict[str, Any]  #: which data: fingerprint, official or not, names of classes

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.declared.sizes)

    @property
    def view(self) -> View:
        """What training may see."""
        data = self.train if self.limit is None else self.limit
        return View(data, self.valid, self.test.x, self.judge, self.declared, self.scale)


@dataclass(frozen=True)
class View:
    """What training may see of a task: no test labels, and true labels of training samples for the upper limit only."""

    data: Weak | Ordinary
    valid: Weak | None
    unlabelled: Tensor  #: the test images
    judge: Belief | None  #: what selection believes of the held-out labels; None: what each run does
    declared: Declared
    scale: float

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.declared.sizes)
