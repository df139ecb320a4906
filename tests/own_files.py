"""Handwritten digits as users bring their data: tables, arrays, and images with a manifest."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from wcll.labels import make_complementary

CLASSES = ("zero", "one", "two")
QUICK = [
    "--budget",
    "600",
    "--model",
    "linear",
    "--lr",
    "0.01",
    "--device",
    "cpu",
]  #: a training in a fraction of a second


def digits(n: int = 240, first: int = 0) -> tuple[np.ndarray, list[str], list[str]]:
    """Images of three digits as bytes, their true names, and for each a name that it is not."""
    x, y = load_digits(return_X_y=True)
    few = y < len(CLASSES)
    x, y = x[few][first : first + n], y[few][first : first + n]
    ybar = make_complementary(y, n_classes=3, random_state=first)
    images = np.rint(x * 15.9375).astype(np.uint8).reshape(-1, 8, 8)
    return images, [CLASSES[k] for k in y], [CLASSES[k] for k in ybar]


def columns(images: np.ndarray) -> dict[str, list[Any]]:
    """Some pixels as numbers, one of them missing at times, a category and a date."""
    flat = images.reshape(len(images), -1)
    found: dict[str, list[Any]] = {f"p{j}": flat[:, j].astype(float).tolist() for j in range(2, 62, 3)}
    found["p2"] = [None if i % 11 == 3 else value for i, value in enumerate(found["p2"])]
    found["ink"] = ["much" if row.mean() > 78 else "little" for row in flat]
    found["day"] = [f"2024-05-{1 + i % 28:02d}" for i in range(len(flat))]
    return found


def write_csv(path: Path, values: dict[str, list[Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(values)
        writer.writerows(["" if cell is None else cell for cell in row] for row in zip(*values.values(), strict=True))
    return path


def write_all(folder: Path, n: int = 240, first: int = 0, stem: str = "train") -> dict[str, Path]:
    """The same samples in every form, with complementary labels and true ones."""
    from PIL import Image
    from pyarrow import parquet, table

    images, true, ruled_out = digits(n, first)
    values = {**columns(images), "not_label": ruled_out, "label": true}
    place = folder / stem
    place.mkdir(parents=True)
    for i, image in enumerate(images):
        Image.fromarray(image).save(place / f"{i}.png")
    manifest = {"path": [f"{i}.png" for i in range(n)], "not_label": ruled_out, "label": true}
    write_csv(place / "manifest.csv", manifest)
    typed = {**values, "day": [date.fromisoformat(day) for day in values["day"]]}
    parquet.write_table(table(typed), folder / f"{stem}.parquet")
    numbers = {
        name: np.array([CLASSES.index(one) for one in some]) for name, some in (("ybar", ruled_out), ("y", true))
    }
    np.savez(folder / f"{stem}.npz", x=images, classes=np.array(CLASSES), **numbers)
    return {
        "csv": write_csv(folder / f"{stem}.csv", values),
        "parquet": folder / f"{stem}.parquet",
        "npz": folder / f"{stem}.npz",
        "images": place,
    }


def write_export(path: Path, files: list[str], ruled_out: list[str]) -> Path:
    """What an annotation tool would export of images, each with a class that somebody said it is not."""
    pairs = [*enumerate(zip(files, ruled_out, strict=True))]
    if path.suffix == ".jsonl":
        session = {"_view_id": "classification", "_annotator_id": "ann@example.org", "_timestamp": 1772000000}
        lines = [
            {"file": file, "label": name, "answer": "reject", "_input_hash": i, **session} for i, (file, name) in pairs
        ]
        path.write_text("\n".join(map(json.dumps, lines)))
        return path
    tasks = []
    for i, (file, name) in pairs:
        choice = {"from_name": "not_this", "to_name": "image", "type": "choices", "value": {"choices": [name]}}
        who = {"completed_by": {"id": 1, "email": "ann@example.org"}, "created_at": "2026-03-01T09:10:11.123456Z"}
        done = {"id": i, "result": [choice], "was_cancelled": False, "task": i + 1, **who}
        tasks.append({"id": i + 1, "data": {"image": f"/data/upload/{file}", "file": file}, "annotations": [done]})
    path.write_text(json.dumps(tasks))
    return path


_DIES = """
import os, signal, sys
from wcll.cli.app import run
from wcll.owndata.unfinished import Unfinished
plain, last = Unfinished._save, int(sys.argv[1])
def save(self, taken, epoch):
    plain(self, taken, epoch)
    if epoch == last:
        os.kill(os.getpid(), signal.SIGKILL)
Unfinished._save = save
Unfinished.__init__.__defaults__ = ("", 0.0)
run(sys.argv[2:])
"""


def killed_after(epoch: int, words: list[str]) -> None:
    """Run a command in a process that is killed with -9 after an epoch; every epoch is saved."""
    command = [sys.executable, "-c", _DIES, str(epoch), *words]
    assert subprocess.run(command, capture_output=True, check=False).returncode == -signal.SIGKILL
