"""Test set-up: processes that tests start find the package, also in a plain source tree."""

import os
from pathlib import Path

SOURCE = str(Path(__file__).parents[1] / "src")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [SOURCE, os.environ.get("PYTHONPATH")]))

import torch  # noqa: E402

torch.set_num_threads(1)  # tests run side by side, on small matrices
