"""Small suites for tests, and ways to run the command line in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys

SMALL = """
title = "Small"
trials = 3

[settings]
dataset = "digits"
imbalance = "eq6"
minority = [0]
p = 2
n_majority = 60
labels = "inverse-size"
judge = "inverse-size"
batch_size = 64
epochs = 12
dtype = "float64"

[grid]
lr = [1e-3, 1e-2]

[[columns]]
title = "linear"
model = "linear"

[[columns]]
title = "mlp"
model = { name = "mlp", hidden = 16, dropout = 0.2 }

[[rows]]
loss = "wcll"

[[rows]]
loss = "pc"

[[rows]]
title = "forward"
loss = "forward"
assume = "inverse-size"

[[rows]]
title = "limit"
loss = "cross-entropy"

[[tables]]
metrics = ["accuracy", "macro_f1"]
select = "label-free"
"""


def heeds_control_c() -> None:
    """For a new process: one that was started in the background would ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(code: str, *arguments: str, **options: object) -> subprocess.Popen[str]:
    """A Python process of its own; its errors come back as text."""
    return subprocess.Popen([sys.executable, "-c", code, *arguments], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                            text=True, **{"preexec_fn": heeds_control_c, **options})  # fmt: skip


MAIN = "import sys; from wcll.cli.app import run; sys.exit(run(sys.argv[1:]))"
