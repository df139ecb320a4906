"""Commands that torchrun starts in several processes: they are introduced to each other, and the first one speaks."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import typer

from wcll.cli.messages import tell
from wcll.exceptions import InputError
from wcll.training.distributed import Ranks, together

WAIT = timedelta(minutes=30)  #: for a process that does not answer, such as one that reads data from a slow disk
GRACE = 1.0  #: seconds until the others leave, in which the one that speaks says why


@dataclass(frozen=True)
class Company:
    """The processes of a command; most often it is one alone."""

    ranks: Ranks | None = None
    device: str | None = None  #: what they compute on, if that is not as the user says

    @property
    def speaks(self) -> bool:
        """Whether this process is the one that says what is done, and writes."""
        return self.ranks is None or self.ranks.number == 0

    def say(self, line: str) -> None:
        """Say it once."""
        if self.speaks:
            tell(f"wcll: {line}")

    @contextmanager
    def agreeing(self) -> Iterator[None]:
        """What is wrong in one process ends all of them, with one line; they wait for one another at the end of it."""
        error: InputError | OSError | None = None
        try:
            yield
        except (InputError, OSError) as found:
            error = found
        if self.ranks is not None:
            lines = self.ranks.lines("" if error is None else str(error))
            wrong = [f"process {rank}: {line}" for rank, line in enumerate(lines) if line]
            if wrong and (error is None or not self.speaks):
                self._leave(wrong[0])
        if error is not None:
            raise error

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """What is wrong in all processes alike is said by one."""
        try:
            yield
        except InputError as error:
            if self.speaks:
                raise
            self._leave(str(error))

    def _leave(self, line: str) -> NoReturn:
        if self.speaks:
            tell(f"wcll: error: {line}")
        else:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun ends all as soon as one is gone
            time.sleep(GRACE)
        raise typer.Exit(2)


@contextmanager
def company(device: str) -> Iterator[Company]:
    """The processes that torchrun has started, ready to train together; without torchrun, this one."""
    import torch
    from torch import distributed

    if not distributed.is_torchelastic_launched() or int(os.environ["WORLD_SIZE"]) == 1:
        yield Company()
        return
    here, number = int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["LOCAL_RANK"])
    gpus = torch.cuda.device_count()
    if device == "cuda" and gpus < here:
        with Company(Ranks(int(os.environ["RANK"]), here, torch.device("cpu"))).quiet():
            expected = f"a GPU for each of {here} processes"
            raise InputError("--device", expected, f"{gpus} GPUs", "start fewer, or take cpu")
    on_gpu = device in ("auto", "cuda") and gpus >= here
    if on_gpu:
        torch.cuda.set_device(number)
    _introduce("nccl" if on_gpu else "gloo", alone=here == int(os.environ["WORLD_SIZE"]))
    try:
        with together() as ranks:
            yield Company(ranks, "cuda" if on_gpu else "cpu")
    finally:
        distributed.destroy_process_group()


def _introduce(backend: str, *, alone: bool) -> None:
    """Let processes find each other; those of one machine by a file and through loopback, so that nobody else can."""
    from torch import distributed

    attempt = os.environ.get("TORCHELASTIC_ERROR_FILE")  # in a folder that torchrun has made for this start alone
    if not alone or not attempt:
        distributed.init_process_group(backend, timeout=WAIT)
        return
    loopback = next((name for _, name in socket.if_nameindex() if name.startswith("lo")), "lo")
    for library in ("GLOO", "NCCL"):
        os.environ.setdefault(f"{library}_SOCKET_IFNAME", loopback)
    count, number = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])
    meeting = (Path(attempt).parent.parent / "wcll").as_uri()
    distributed.init_process_group(backend, meeting, rank=number, world_size=count, timeout=WAIT)
