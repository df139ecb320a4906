"""Named random streams: one more draw in one stage moves nothing elsewhere."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from wcll.checks import InputTypeError, choice

STAGES = ("imbalance", "labels", "validation", "test", "init", "batches", "dropout", "augment", "theory")

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
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise InputTypeError("random_state", "an integer, a NumPy Generator or None", type(random_state).__name__)
    return np.random.default_rng(stream_seed(int(random_state), stage, *parts))
