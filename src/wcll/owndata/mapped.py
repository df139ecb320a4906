"""Images that do not fit into memory: decoded once into a file, and mapped from there."""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wcll._files import replacing
from wcll._memory import in_words
from wcll._validation import BoolArray, IntArray
from wcll.datasets.images import Decoding
from wcll.exceptions import InputError
from wcll.labels.counts import label_totals
from wcll.labels.encoding import to_pairs
from wcll.owndata.preprocessing import Preprocessing
from wcll.owndata.sources import Reading, Roles, Samples, counts_of, images_stamp, read_manifest
from wcll.owndata.standing import Standing, Streaming
from wcll.owndata.unfinished import IMAGES, own_files
from wcll.training.runs import Feed, Mapped


@dataclass(frozen=True, eq=False)
class ImageStream(Standing):
    """Images in a file that is mapped into memory, and some of them that stand for all."""

    images: NDArray[np.uint8]  #: all of them, (n, channels, height, width)
    labels: IntArray | BoolArray  #: of all

    def feed(self, *, pairs: bool, batch_size: int, seed: int, dtype: str) -> Feed:
        """All images, for an engine, in the order in which it would take them from memory."""
        labels, weight, mass, place = self.labels, None, 1.0, np.arange(self.n)
        if pairs and labels.ndim == 2:
            place, labels, share = to_pairs(labels.astype(np.bool_, copy=False))
            mass = float(share.mean())
            weight = (share / share.mean()).astype(dtype) if np.ptp(share) > 0 else None
        return Mapped(
            lambda rows: self._numbers(place[rows]).astype(dtype, copy=False),
            labels,
            weight,
            n_classes=len(self.totals),
            room=self.room,
            batch_size=batch_size,
            seed=seed,
            mass=mass,
        )

    def _numbers(self, places: IntArray) -> NDArray[Any]:
        """Bytes as an estimator makes numbers of them; read in the order in which they lie."""
        order = np.argsort(places)
        images = np.empty((len(places), *self.images.shape[1:]), np.uint8)
        images[order] = self.images[places[order]]
        numbers: NDArray[Any] = images / np.float32(255)
        return numbers


def read_image_stream(
    path: Path, roles: Roles, reading: Reading, streaming: Streaming, unfinished: Path
) -> ImageStream:
    """Decode the images of a folder into a file in ``unfinished``, unless it is there already, and map it."""
    samples = read_manifest(path, roles, reading)
    decoding = Decoding.of(samples.files, reading.colour, reading.size)
    samples = replace(samples, stamp=images_stamp(path, samples, reading))
    images = _mapped(decoding, samples.stamp, unfinished)
    classes = samples.all_classes()
    labels = _labels(samples, classes)
    counts, chosen = counts_of(samples), streaming.chosen(len(samples), prod(images.shape[1:]))
    sample = replace(samples.take(chosen.tolist()), features=images[chosen], classes=classes, counts=counts)
    return ImageStream(
        samples=sample,
        x=np.asarray(sample.features),
        preprocessing=Preprocessing({}, 0),
        notes=(),
        counts=counts,
        totals=label_totals(labels, len(classes), np.ones(len(samples))),
        streaming=streaming,
        images=images,
        labels=labels,
    )


def _labels(samples: Samples, classes: tuple[str, ...]) -> IntArray | BoolArray:
    """Class indices, or a mask where some images have several labels."""
    assert samples.not_labels is not None
    place = {name: k for k, name in enumerate(classes)}
    if all(len(names) == 1 for names in samples.not_labels):
        return np.array([place[names[0]] for names in samples.not_labels])
    mask = np.zeros((len(samples), len(classes)), np.bool_)
    for i, names in enumerate(samples.not_labels):
        mask[i, [place[name] for name in names]] = True
    return mask


def _mapped(decoding: Decoding, stamp: str, folder: Path) -> NDArray[np.uint8]:
    """All images as a file of NumPy's, named by what they were decoded from and to, mapped into memory."""
    shape = (len(decoding.paths), *(decoding.shape if decoding.colour else (1, *decoding.shape)))
    digest = blake2b(f"{stamp} {shape} {decoding.size}".encode(), digest_size=8).hexdigest()
    path = folder / f"images-{digest}.npy"
    if not path.is_file():
        folder.mkdir(exist_ok=True)
        for old in set(own_files(folder, IMAGES)) - {path}:  # another process may decode the same beside this one
            old.unlink(missing_ok=True)
        try:
            _decode(decoding, shape, path)
        except BaseException:
            with suppress(OSError):  # something else is in it
                folder.rmdir()
            raise
    images: Any = np.load(path, mmap_mode="r")
    return images  # type: ignore[no-any-return]


def _decode(decoding: Decoding, shape: tuple[int, ...], path: Path) -> None:
    """Write all images, some at a time, or nothing."""
    if (free := shutil.disk_usage(path.parent).free) < prod(shape):
        got = f"{in_words(free)} free, where {shape[0]} decoded images take {in_words(prod(shape))}"
        raise InputError("--out", "a disk with room for them", got)
    with replacing(path, "--out") as draft, draft.open("wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_2_0(file, header)
        for places in decoding.parts():
            file.write(decoding.read(places).data)
