"""``torchrun -m wcll train``: one model, one voice, one writer; it goes on in one process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import torch

from own_files import write_all
from small import PATIENCE
from wcll._files import STATE
from wcll.cli.app import run
from wcll.cli.models import Company
from wcll.owndata.folder import OwnModel
from wcll.owndata.unfinished import Unfinished

#: No port of torchrun's is open to anybody: processes of one machine meet in a file.
QUIET = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "OMP_NUM_THREADS": "1"}
TRAIN = ["--loss", "log", "--model", "linear", "--lr", "0.001", "--device", "cpu"]  #: convex: rounding dies out


#: The same command twice, in the same processes, which meet in another file for the second time.
TWICE = """
import os, sys
from pathlib import Path
from wcll.cli.app import run
assert run(sys.argv[1:]) == 0
print("the first is over", file=sys.stderr)
folder = Path(os.environ["TORCHELASTIC_ERROR_FILE"]).parent.parent / "again"
folder.mkdir(exist_ok=True)
os.environ["TORCHELASTIC_ERROR_FILE"] = str(folder / "0" / "error")
sys.exit(run(sys.argv[1:]))
"""


def torchrun(folder: Path, *words: str, program: tuple[str, ...] = ("-m", "wcll")) -> subprocess.Popen[str]:
    how = ["--nproc-per-node", "2", "--rdzv-backend", "c10d", "--rdzv-conf", "store_type=file"]
    how += ["--rdzv-endpoint", str(Path(tempfile.mkdtemp(dir=folder)) / "meeting"), *program]
    command = [sys.executable, "-m", "torch.distributed.run", *how, *words]
    return subprocess.Popen(command, env={**os.environ, **QUIET}, stdout=-1, stderr=-1, text=True)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_all(tmp_path_factory.mktemp("own"))


@pytest.fixture
def table(files):
    return files["csv"]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return OwnModel.load(folder).classifier.network_.state_dict()


def train(table: Path, out: Path, *more: str) -> list[str]:
    return ["train", str(table), "--ignore", "label", *TRAIN, "--out", str(out), *more]


def test_killed_in_two_processes_and_resumed_in_one(table, tmp_path):
    """The model is that of one process that never stopped, to rounding."""
    assert run(train(table, tmp_path / "alone", "--epochs", "3000")) == 0
    out = tmp_path / "model"
    process = torchrun(tmp_path, *train(table, out, "--epochs", "3000"))
    state, end = Unfinished.beside(out) / STATE, time.monotonic() + PATIENCE
    while not state.exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for child in children:
        os.kill(int(child), signal.SIGKILL)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode
    assert len(children) == 2
    assert state.exists(), said
    assert not out.exists()
    assert said.count("wcll: 240 samples") == 1
    assert run(train(table, out, "--epochs", "3000", "--resume")) == 0
    made = json.loads((out / "card.json").read_text())["made"]
    assert 0 < made["resumed_after_epoch"] < 3000
    found = weights(out)
    for name, expected in weights(tmp_path / "alone").items():
        torch.testing.assert_close(found[name], expected, atol=1e-4, rtol=1e-3)


def test_one_process_speaks_and_writes(files, tmp_path):
    """All of them stream a table that would not fit into memory, say."""
    streamed = ["--epochs", "3", "--stream", "--buffer", "100", "--sample", "120"]
    words = train(files["parquet"], tmp_path / "model", *streamed, "--json")
    (tmp_path / "twice.py").write_text(TWICE)
    process = torchrun(tmp_path, *words, program=(str(tmp_path / "twice.py"),))
    out, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode  # of the second command, as there is a model now
    assert errors.count("the first is over") == 2, errors
    said, again = errors.split("the first is over", 1)
    card = json.loads(out)  # one, not two
    assert card["made"]["processes"] == 2
    assert said.count("wcll: 240 samples") == 1
    assert run(train(files["parquet"], tmp_path / "alone", *streamed)) == 0
    for name, expected in weights(tmp_path / "alone").items():
        torch.testing.assert_close(weights(tmp_path / "model")[name], expected)
    assert [line for line in again.splitlines() if line.startswith("wcll:")] == [
        f"wcll: error: --out: expected a new folder, got {tmp_path / 'model'}, which holds a model; "
        "add --force to replace it"
    ]


class Told:
    """In place of processes: what each of them says, in order, the second being this one or not."""

    def __init__(self, number: int, lines: list[str]) -> None:
        self.number, self.said = number, lines

    def lines(self, own: str) -> list[str]:
        return self.said


@pytest.mark.parametrize("number", [0, 1])
def test_what_is_wrong_in_one_process_ends_all(number, capsys, monkeypatch):
    monkeypatch.setattr("wcll.cli.models.GRACE", 0.0)
    monkeypatch.setattr(signal, "signal", lambda *given: None)
    from typer import Exit

    company = Company(Told(number, ["", "data.csv: expected a file, got none"]))
    with pytest.raises(Exit) as ended, company.agreeing():
        pass
    assert ended.value.exit_code == 2
    expected = "" if number else "wcll: error: process 1: data.csv: expected a file, got none\n"
    assert capsys.readouterr().err == expected


def test_a_gpu_for_each_process(monkeypatch, capsys):
    for name, value in {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "LOCAL_RANK": "0", "RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert run(["train", "data.csv", "--out", "model", "--device", "cuda"]) == 2
    assert capsys.readouterr().err == (
        "wcll: error: --device: expected a GPU for each of 2 processes, got 1 GPUs; start fewer, or take cpu\n"
    )
