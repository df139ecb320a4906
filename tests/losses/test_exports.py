"""Every loss has its function in `wcll.functional`, where editors and mypy see it."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import wcll
from wcll import functional, losses
from wcll.losses import LOSSES

every_loss = pytest.mark.parametrize("spec", LOSSES.values(), ids=lambda spec: spec.name)


@every_loss
def test_every_loss_has_its_function(spec):
    name = spec.name.replace("-", "_")
    assert getattr(functional, name) is spec.function
    assert name in functional.__all__


def test_nothing_else_is_exported():
    assert len(functional.__all__) == len(LOSSES)
    for room in (functional, losses):
        assert all(hasattr(room, name) for name in room.__all__)


@pytest.mark.skipif(find_spec("mypy") is None, reason="mypy is not installed")
def test_mypy_sees_a_misspelt_name(tmp_path):
    (tmp_path / "right.py").write_text('import wcll.losses\n\nwcll.losses.LossModule("log")\n')
    (tmp_path / "wrong.py").write_text('import wcll.losses\n\nwcll.losses.LosModule("log")\n')
    quick = "[mypy-torch.*,numpy.*]\nfollow_imports = skip\n"  # to read them takes long, and says nothing of our names
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\n\n" + quick)
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=silent", "right.py", "wrong.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(Path(wcll.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 1, found.stdout + found.stderr
    assert 'wrong.py:3: error: Module has no attribute "LosModule"; maybe "LossModule"' in found.stdout
    assert "Found 1 error in 1 file" in found.stdout


@every_loss
def test_every_loss_is_documented(spec):
    text = inspect.getdoc(spec.function)
    for part in (".. math::", "Parameters\n---", "Returns\n---", "Notes\n---", "Examples\n---"):
        assert part in text, part
    for name in inspect.signature(spec.function).parameters:
        assert f"\n{name} : " in text, name
    assert spec.labels == "ordinary" or f".. [1] {spec.paper}." in text.replace("\n   ", " ")
