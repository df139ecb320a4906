"""Periodic checkpoints, so that killed or time-limited runs can resume."""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor

from wcll.exceptions import InputError
from wcll.experiments.grouping import Job, Stopwatch
from wcll.experiments.store import Store
from wcll.experiments.train import Recording
from wcll.persistence import open_model, read_model, write_model
from wcll.training import Engine

EVERY = 120.0  #: seconds between two saves; what is shorter is never saved, unless its time is over
KEPT = 14 * 86400.0  #: seconds after which nobody will go on with what was left
LISTS = ("losses", "predicted", "scores")
ENDING = ".safetensors"
OWN = re.compile(r"[0-9a-f]{24}\.safetensors|\.[0-9a-f]{24}\.safetensors\.[a-z0-9_]{8}")  #: names of files and drafts


class Checkpoints:
    """The files of trainings under way, beside a store; each is named after the runs that it holds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @staticmethod
    def of_store(store: Path) -> Checkpoints:
        """Those of a store."""
        return Checkpoints(store.with_name(f"{store.name}.checkpoints"))

    def of(self, jobs: Sequence[Job], fingerprints: Sequence[object], watch: Stopwatch | None = None) -> Checkpoint:
        """The file of some jobs that train together, on the data of these fingerprints."""
        keys = " ".join([*(trial.key for job in jobs for trial in job.trials), *map(str, fingerprints)])
        path = self.folder / f"{blake2b(keys.encode(), digest_size=12).hexdigest()}{ENDING}"
        return Checkpoint(path, jobs, watch)

    def begun(self) -> list[list[list[str]]]:
        """The keys of the runs of every file, group by group, as they were trained together."""
        return [found for path in self._files() if (found := _runs(path))]

    def forget(self, store: Store) -> None:
        """Remove those of runs that are in a store by now; drafts that others may be writing stay."""
        for path in self._files():
            keys = [key for group in _runs(path) for key in group]
            if keys and store.finished(keys):
                path.unlink(missing_ok=True)
        self._remove_folder()

    def tidy(self, store: Store) -> None:
        """When nobody trains, remove files that are damaged, or old, or of runs that are in a store by now."""
        for path in self._files():
            keys = [key for group in _runs(path) for key in group]
            with suppress(OSError):
                if not keys or store.finished(keys) or time.time() - path.stat().st_mtime > KEPT:
                    path.unlink()
        self._remove_folder()

    def _files(self) -> list[Path]:
        there = self.folder.iterdir() if self.folder.is_dir() else ()
        return sorted(path for path in there if OWN.fullmatch(path.name))  # drafts of processes that were killed, too

    def _remove_folder(self) -> None:
        with suppress(OSError):  # not there, or files of other trainings are in it
            self.folder.rmdir()


class Checkpoint:
    """The file of one training."""

    def __init__(self, path: Path, jobs: Sequence[Job], watch: Stopwatch | None = None) -> None:
        self.path, self.watch = path, watch
        self._runs, self._epochs = [list(job.keys) for job in jobs], jobs[0].first.epochs
        self._saved = time.monotonic()

    def load(self, engine: Engine, recordings: Sequence[Recording], device: torch.device) -> None:
        """Put an engine and recordings where they were; a damaged file, or another version's, is as good as none."""
        with suppress(InputError, KeyError, ValueError, zlib.error):
            header, tensors = read_model(self.path)
            kept = [
                {name: _unpacked(tensors[f"{i}.{name}"], *form).to(device) for name, form in forms.items()}
                for i, forms in enumerate(header["recorded"])
            ]
            state = {name.removeprefix("engine."): t for name, t in tensors.items() if name.startswith("engine.")}
            if len(kept) == len(recordings) and engine.load_state(state):
                for recording, lists in zip(recordings, kept, strict=True):
                    tables = lists.pop("tables", ())
                    recording.tables.update(zip(header["compared"], tables, strict=True))
                    for name, values in lists.items():
                        getattr(recording, name).extend(values)
        if self.watch:
            self.watch.epoch_begins()

    def after_epoch(self, engine: Engine, recordings: Sequence[Recording]) -> bool:
        """Save if it is time; training goes on without, if it cannot be saved. True if there is no time to go on."""
        if self.watch:
            self.watch.epoch_ends()
        if engine.epoch == self._epochs:
            return False
        over = self.watch is not None and self.watch.out_of_time(_size(engine, recordings))
        if over or time.monotonic() - self._saved >= EVERY:
            with suppress(InputError):  # another process may just have taken the folder away
                self._save(engine, recordings)
            self._saved = time.monotonic()
        if over and not self.path.exists():
            self._save(engine, recordings)
        if self.watch:
            self.watch.epoch_begins()
        return over

    def _save(self, engine: Engine, recordings: Sequence[Recording]) -> None:
        tensors, forms = {f"engine.{name}": tensor for name, tensor in engine.state().items()}, []
        for i, recording in enumerate(recordings):
            lists = {name: getattr(recording, name) for name in LISTS}
            lists["tables"] = [table for _, table in sorted(recording.tables.items())]
            stacked = {name: torch.stack(values).cpu() for name, values in lists.items() if values}
            tensors |= {f"{i}.{name}": _packed(whole) for name, whole in stacked.items()}
            forms.append({name: [list(whole.shape), _dtype(whole)] for name, whole in stacked.items()})
        header = {"compared": sorted(recordings[0].tables), "runs": self._runs, "recorded": forms}
        try:
            self.path.parent.mkdir(exist_ok=True)
            write_model(self.path, tensors, header)
        except (OSError, SafetensorError) as error:
            raise InputError("--store", f"a place for {self.path}", str(error)) from None


def _size(engine: Engine, recordings: Sequence[Recording]) -> int:
    """Bytes of a training, before any are saved by packing."""
    recorded = [tensor for recording in recordings for tensor in recording.predicted]
    return sum(tensor.nbytes for tensor in (*engine.state().values(), *recorded))


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _packed(whole: Tensor) -> Tensor:
    """Epoch by epoch, as a few bytes: whole numbers, such as predicted classes, as what has changed since the last."""
    array = whole.numpy()
    if array.dtype.kind in "iu":
        array = np.concatenate([array[:1], array[1:] ^ array[:-1]])
    return torch.frombuffer(bytearray(zlib.compress(array.tobytes(), 1)), dtype=torch.uint8)


def _unpacked(packed: Tensor, shape: Sequence[int], dtype: str) -> Tensor:
    """What was packed."""
    array: Any = np.frombuffer(zlib.decompress(packed.numpy().tobytes()), dtype=dtype).reshape(shape)
    return torch.as_tensor(np.bitwise_xor.accumulate(array) if array.dtype.kind in "iu" else array.copy())


def _runs(path: Path) -> list[list[str]]:
    """The keys of the runs in a file, group by group; none if it is damaged, or another version's."""
    try:
        with open_model(path) as file:
            found = file.header["runs"]
    except (InputError, OSError, KeyError, TypeError):
        return []
    lists = isinstance(found, list) and all(isinstance(group, list) for group in found)
    return found if lists and all(isinstance(key, str) for group in found for key in group) else []
