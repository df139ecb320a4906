"""Training images of Tiny-ImageNet alone, some to learn from and some to look at: how to train is chosen there.

    python benchmarks/tiny.py --data DATA                       writes DATA/tiny-development.npz
    WCLL_DATA=DATA wcll run benchmarks/tiny.toml --device cuda

DATA has the official files. No image of the official validation set, which is what results are tested on, is read.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from wcll.datasets import load_dataset

CLASSES = 5  #: the first ones, as in the paper
LOOKED_AT = 100  #: of 500 training images of a class, the last ones


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    data = parser.parse_args().data
    found = load_dataset("tiny-imagenet", data).only(range(CLASSES))
    train, y = found.train, found.train.y
    rows = [np.flatnonzero(y == k) for k in range(CLASSES)]
    learnt, looked_at = (
        np.sort(np.concatenate(some))
        for some in ([one[:-LOOKED_AT] for one in rows], [one[-LOOKED_AT:] for one in rows])
    )
    parts = {"x": train.x[learnt], "y": y[learnt], "x_test": train.x[looked_at], "y_test": y[looked_at]}
    np.savez(data / "tiny-development.npz", classes=list(found.classes), **parts)


if __name__ == "__main__":
    main()
