"""How fast ``wcll train --stream`` goes through a Parquet file, against plain reading, and how much memory it takes.

    python benchmarks/streaming.py [--rows 10000000] [--features 100] [--group 100000] [--folder /tmp]

Makes a file of float32 columns with signal in a temporary folder, removed afterwards, a group of rows at a time. Each
step is a process of its own: pyarrow's ``iter_batches`` over all columns to NumPy (one thread, as many rows at a time;
with the options that streaming has, which others are compared with, and with pyarrow's defaults),
the counting pass, and two trainings of one epoch by the command line. Rows a second are of the pass alone, of trainings
as ``history.csv`` has it; seconds are of the whole process. Memory is VmHWM, summed over the process and its children.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

CLASSES = 5
TRAIN = ["--not-label", "ybar", "--model", "linear", "--epochs", "1", "--stream", "--device", "cpu"]
TRAININGS = {"train --loss wcll": ["--loss", "wcll", "--lr", "0.002"], "train --loss auto": ["--loss", "auto"]}
POLL = 0.02  #: seconds between two looks at memory, which Linux remembers at its height


def make(path: Path, rows: int, features: int, group: int) -> None:
    """Normal numbers around a mean a class, and one of the other classes as label."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    centres = rng.standard_normal((CLASSES, features), dtype=np.float32) / 4
    schema = pa.schema([*((f"x{j}", pa.float32()) for j in range(features)), ("ybar", pa.int64())])
    with parquet.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, group):
            n = min(group, rows - start)
            y = rng.integers(0, CLASSES, n)
            x = rng.standard_normal((features, n), dtype=np.float32) + centres[y].T
            ybar = (y + rng.integers(1, CLASSES, n)) % CLASSES
            writer.write_table(pa.table([*x, ybar], schema=schema), row_group_size=group)


def usual(path: Path, **options: Any) -> dict[str, Any]:
    """All columns to NumPy, and nothing else, as pyarrow reads by default."""
    from pyarrow import parquet

    from wcll.owndata.parts import PART

    start = time.perf_counter()
    with parquet.ParquetFile(path, **options) as file:
        size = PART // (8 * len(file.schema_arrow.names))
        for batch in file.iter_batches(size, use_threads=False):
            for column in batch.columns:
                column.to_numpy(zero_copy_only=False)
    return {"seconds": time.perf_counter() - start}


def plain(path: Path) -> dict[str, Any]:
    """The same with the options that streaming reads with: a little of every column at a time, which is faster."""
    from wcll.owndata.parts import AT_ONCE

    return usual(path, pre_buffer=False, buffer_size=AT_ONCE)


def counting(path: Path) -> dict[str, Any]:
    """The pass before training; nothing is kept as a sample."""
    from wcll.owndata.counting import count
    from wcll.owndata.parts import ParquetRows
    from wcll.owndata.sources import Roles

    start = time.perf_counter()
    count(ParquetRows.all_of(path), Roles(("ybar",)), (), np.arange(1)).fitted()
    return {"seconds": time.perf_counter() - start}


STEPS = {"plain reading": plain, "pyarrow's default": usual, "counting pass": counting}


def memory(process: int) -> dict[int, int]:
    """VmHWM of a process and of all that came of it, in kB."""
    parents, high = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                lines = (entry / "status").read_text().splitlines()
            except OSError:  # it has ended
                continue
            fields = dict(line.split(":", 1) for line in lines if ":" in line)
            parents[int(entry.name)] = int(fields["PPid"])
            high[int(entry.name)] = int(fields.get("VmHWM", "0 kB").split()[0])
    family = {process}
    while more := {one for one, parent in parents.items() if parent in family} - family:
        family |= more
    return {one: high[one] for one in family if one in high}


def watched(command: list[str]) -> tuple[str, float, float]:
    """What a command prints, its seconds, and the memory of its processes in MB."""
    start, highest = time.perf_counter(), {}
    with tempfile.TemporaryFile("w+") as out:
        with subprocess.Popen(command, stdout=out, text=True) as process:
            while process.poll() is None:
                for one, size in memory(process.pid).items():
                    highest[one] = max(size, highest.get(one, 0))
                time.sleep(POLL)
        seconds = time.perf_counter() - start
        out.seek(0)
        printed = out.read()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return printed, seconds, sum(highest.values()) * 1024 / 1e6


def line(what: str, rows: int, seconds: float, reading: float, whole: float, high: float) -> None:
    """A row of the table."""
    print(f"{what:<20}{rows / seconds:>12,.0f}{reading / seconds:>10.2f}{whole:>12.1f}{high:>10.0f}", flush=True)


def trained(path: Path, name: str, budget: int | None) -> tuple[float, float, float]:
    """Seconds of the one epoch, seconds in all, and memory, of a training by the command line."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        out = Path(folder) / "model"
        command = [sys.executable, "-m", "wcll", "train", str(path), *TRAIN, *TRAININGS[name], "--out", str(out)]
        if budget and "auto" in TRAININGS[name]:
            command += ["--budget", str(budget)]
        _, whole, high = watched(command)
        with (out / "history.csv").open(newline="") as file:
            return sum(float(row["seconds"]) for row in csv.DictReader(file)), whole, high


def main() -> None:
    """Make the file, measure, and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--group", type=int, default=100_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--budget", type=int, help="about how many steps the search of loss auto may take")
    parser.add_argument("--step", choices=list(STEPS), help="for the processes that this starts")
    parser.add_argument("--file", type=Path, help="for them, too")
    given = parser.parse_args()
    if given.step:
        print(json.dumps(STEPS[given.step](given.file)))
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        path = Path(folder) / "big.parquet"
        make(path, given.rows, given.features, given.group)
        size = path.stat().st_size / 1e6
        print(f"{given.rows:,} rows, {given.features} features, groups of {given.group:,} rows: {size:.0f} MB")
        print(f"{'':<20}{'rows a s':>12}{'of plain':>10}{'s in all':>12}{'peak MB':>10}")
        reading = 0.0
        for step in STEPS:
            printed, whole, high = watched([sys.executable, __file__, "--step", step, "--file", str(path)])
            seconds = json.loads(printed)["seconds"]
            reading = reading or seconds
            line(step, given.rows, seconds, reading, whole, high)
        for name in TRAININGS:
            seconds, whole, high = trained(path, name, given.budget)
            line(name, given.rows, seconds, reading, whole, high)
    print_versions()


def print_versions() -> None:
    """What it ran on."""
    import pyarrow
    import torch

    import wcll

    versions = f"wcll {wcll.__version__}, pyarrow {pyarrow.__version__}, torch {torch.__version__}"
    python = f"numpy {np.__version__}, python {platform.python_version()}"
    print(f"{versions}, {python}, {platform.machine()}, {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
