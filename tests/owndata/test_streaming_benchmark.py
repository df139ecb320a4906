"""The benchmark of streaming, small: every step prints a row that the guide's model of costs can read."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "streaming.py"
ROW = re.compile(r"^(\S.*?) +([\d,]+) +([\d.]+) +([\d.]+) +(\d+)$", re.MULTILINE)


@pytest.mark.skipif(not SCRIPT.exists(), reason="the benchmarks are not beside the package")
@pytest.mark.skipif("WCLL_KILLS" not in os.environ, reason="20 s about a benchmark alone: make torture runs it")
def test_every_step_is_measured(tmp_path):
    words = ["--rows", "3000", "--features", "5", "--group", "1000", "--budget", "300", "--folder", str(tmp_path)]
    done = subprocess.run([sys.executable, str(SCRIPT), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "3,000 rows, 5 features, groups of 1,000 rows: " in done.stdout
    found = ROW.findall(done.stdout)
    assert [name for name, *_ in found] == [
        "plain reading",
        "pyarrow's default",
        "counting pass",
        "train --loss wcll",
        "train --loss auto",
    ]
    assert found[0][2] == "1.00"
    assert all(0 < int(megabytes) < 5000 for *_, megabytes in found)
    assert not list(tmp_path.iterdir())  # the file is gone
