"""Some samples that stand for all of some data, where not all are in memory."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wcll._memory import check_memory
from wcll._random import stream
from wcll._validation import FloatArray, IntArray
from wcll.owndata.preprocessing import Preprocessing
from wcll.owndata.sources import Counts, Samples, labels_of
from wcll.training.runs import room_for

SAMPLE = 100_000  #: samples that stand for all where something is chosen
SAMPLE_BYTES = 2**28  #: of these in memory, at most, unless a user says how many
#: Of samples that are shuffled together: they are there twice, where they are read to and where they are learnt from.
BUFFER_BYTES = 2**27


@dataclass(frozen=True)
class Streaming:
    """How data are streamed, as far as a user says it."""

    sample: int | None = None  #: samples that stand for all
    buffer: int | None = None  #: samples that are shuffled together
    seed: int = 0

    def chosen(self, n: int, width: int) -> IntArray:
        """The places of those that stand for all ``n``, of ``width`` numbers each, in order: drawn by the seed."""
        size = min(SAMPLE, room_for((2 * width,), SAMPLE_BYTES)) if self.sample is None else self.sample
        if size >= n:
            return np.arange(n)
        return np.sort(stream(self.seed, "validation", "sample").choice(n, size, replace=False, shuffle=False))

    def room(self, shape: tuple[int, ...]) -> int:
        """How many samples of a shape are shuffled together, if that fits into memory."""
        if self.buffer is None:
            return room_for(shape, BUFFER_BYTES)
        what = f"{self.buffer} samples of {prod(shape)} numbers, twice,"
        check_memory("--buffer", what, 2 * 4 * self.buffer * prod(shape))
        return self.buffer


@dataclass(frozen=True, eq=False)
class Standing:
    """Samples that stand for all, what is known of all, and how they become numbers."""

    samples: Samples
    x: NDArray[Any]  #: the same, as an estimator takes them
    preprocessing: Preprocessing
    notes: tuple[str, ...]
    counts: Counts  #: of all
    totals: FloatArray  #: labels of all by class, of several of a sample each counting as its share
    streaming: Streaming

    @property
    def n(self) -> int:
        """How many there are in all."""
        return self.counts.n

    @property
    def y(self) -> Any:
        """Labels of those that stand for all."""
        return labels_of(self.samples)

    @property
    def groups(self) -> NDArray[Any] | None:
        """Groups of those that stand for all."""
        return None if self.samples.groups is None else np.array(self.samples.groups)

    @property
    def key(self) -> str:
        """Of what a training depends on beside those that stand for all."""
        return f" {self.samples.stamp} {self.n} {self.room}"

    @property
    def room(self) -> int:
        """How many samples are shuffled together."""
        return self.streaming.room(self.x.shape[1:])
