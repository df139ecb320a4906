"""Named random streams: one more draw in one stage moves nothing elsewhere."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np

from wcll._validation import choice
from wcll.exceptions import InputError, InputTypeError

STAGES = ("imbalance", "labels", "validation", "test", "init", "batches", "neighbors", "dropout", "augment", "theory")

RandomState = int | np.random.Generator | None


def stream_seed(seed: int, stage: str, *parts: str | int) -> int:
    """A 56-bit seed that depends on the seed, the stage and further parts (a step, a purpose)."""
    name = "/".join(map(str, (seed, choice("stage", stage, STAGES), *parts)))
    return int.from_bytes(blake2b(name.encode(), digest_size=7).digest(), "big")


def stream(random_state: RandomState, stage: str, *parts: str | int) -> np.random.Generator:
    """The NumPy generator of a stage.

    An integer seed names the stream; a generator is used as it is; ``None`` takes fresh entropy.

    >>> bool(stream(0, "labels").random() == stream(0, "labels").random())
    True
    >>> bool(stream(0, "labels").random() == stream(0, "imbalance").random())
    False
    """
    if random_state is None or isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state)
    return np.random.default_rng(stream_seed(whole_seed(random_state), stage, *parts))


def whole_seed(random_state: Any) -> int:
    """An integer that names streams."""
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise InputTypeError("random_state", "an integer, a NumPy Generator or None", type(random_state).__name__)
    if abs(int(random_state)) >= 2**256:
        raise InputError("random_state", "an integer of at most 256 bits", "a larger one")
    return int(random_state)
