"""A loss that is chosen with all else: what stands for it where runs are planned, kept and shown."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from wcll.losses.spec import LOSSES, LossSpec

AUTO = "auto"  #: the name of a loss that is to be chosen, with all else
LIKELIHOOD = "forward"  #: what it turns out to be, told the Q that was chosen


def _not_trained(logits: Tensor, ybar: Any, *, transition: Any) -> Tensor:
    raise NotImplementedError(f"loss {AUTO!r} is not trained: it chooses what is")


_CHOSEN = LossSpec(AUTO, _not_trained, "auto", paper="", equation="", several=True, revision=2)


def spec_of(name: str) -> LossSpec:
    """A registered loss, or what is known of the one that will be chosen; its revision is raised when choices change.

    >>> spec_of("auto").link, spec_of("pc").link
    ('softmax', 'scores')
    """
    return _CHOSEN if name == AUTO else LOSSES[name]
