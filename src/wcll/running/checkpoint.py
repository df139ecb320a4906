"""Long trainings, saved on the way: a process that dies loses minutes, not hours."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import torch
from torch import Tensor

from wcll.checks import InputError
from wcll.persistence import read_model, write_model
from wcll.results.store import Store
from wcll.running.plan import Job
from wcll.running.train import Recording
from wcll.training import Engine

EVERY = 120.0  #: seconds between two saves; what is shorter is never saved
LISTS = ("losses", "predicted", "scores")


class Checkpoints:
    """The files of trainings under way, beside a store; each is named after the runs that it holds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._used: list[Path] = []

    @staticmethod
    def of_store(store: Path) -> Checkpoints:
        """Those of a store."""
        return Checkpoints(store.with_name(f"{store.name}.checkpoints"))

    def of(self, jobs: Sequence[Job], fingerprints: Sequence[object]) -> Checkpoint:
        """The file of some jobs that train together, on the data of these fingerprints."""
        keys = " ".join([*(trial.key for job in jobs for trial in job.trials), *map(str, fingerprints)])
        path = self.folder / f"{blake2b(keys.encode(), digest_size=12).hexdigest()}.safetensors"
        self._used.append(path)
        return Checkpoint(path)

    def clear(self) -> None:
        """Forget what is written to the store by now."""
        for path in self._used:
            path.unlink(missing_ok=True)
        self._used.clear()
        with suppress(OSError):  # not there, or another process's files are in it
            self.folder.rmdir()

    def tidy(self, store: Store) -> None:
        """Forget everything if nobody is at work: files of trainings that were cut otherwise are of no use."""
        if not store.claimed():
            shutil.rmtree(self.folder, ignore_errors=True)


class Checkpoint:
    """The file of one training."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._saved = time.monotonic()

    def load(self, engine: Engine, recordings: Sequence[Recording], device: torch.device) -> None:
        """Put an engine and recordings where they were; a damaged file, or another version's, is as good as none."""
        try:
            header, tensors = read_model(self.path)
        except InputError:
            return
        state = {name.removeprefix("engine."): t for name, t in tensors.items() if name.startswith("engine.")}
        if not engine.load_state(state):
            return
        for i, recording in enumerate(recordings):
            kept = {name: tensors.get(f"{i}.{name}", torch.empty(0)).to(device) for name in (*LISTS, "tables")}
            for name in LISTS:
                getattr(recording, name).extend(kept[name])
            recording.tables.update(zip(header["compared"], kept["tables"], strict=False))

    def maybe_save(self, engine: Engine, recordings: Sequence[Recording]) -> None:
        """Save if it is time; training goes on without, if it cannot be saved."""
        if time.monotonic() - self._saved < EVERY:
            return
        with suppress(OSError, InputError):  # another process may just have taken the folder away
            self._save(engine, recordings)
        self._saved = time.monotonic()

    def _save(self, engine: Engine, recordings: Sequence[Recording]) -> None:
        tensors = {f"engine.{name}": tensor for name, tensor in engine.state().items()}
        for i, recording in enumerate(recordings):
            tensors |= _recorded(i, recording)
        self.path.parent.mkdir(exist_ok=True)
        write_model(self.path, tensors, {"compared": sorted(recordings[0].tables)})


def _recorded(index: int, recording: Recording) -> dict[str, Tensor]:
    lists = {name: getattr(recording, name) for name in LISTS}
    lists["tables"] = [table for _, table in sorted(recording.tables.items())]
    return {f"{index}.{name}": torch.stack([t.cpu() for t in values]) for name, values in lists.items() if values}
