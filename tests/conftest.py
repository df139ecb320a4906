"""Test set-up."""

import os
from pathlib import Path

import hypothesis
import pytest
import torch

# Processes that tests start find the package, also in a plain source tree.
SOURCE = str(Path(__file__).parents[1] / "src")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [SOURCE, os.environ.get("PYTHONPATH")]))

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or each of them would compile the package

torch.set_num_threads(1)  # tests run side by side, on small matrices

# Machines are shared and noisy: no time limits, not even for how long examples take to make. CI repeats the same
# examples; elsewhere every run tries new ones.
hypothesis.settings.register_profile(
    "house",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize="CI" in os.environ,
)
hypothesis.settings.load_profile("house")


@pytest.fixture(scope="session")
def paper_results():
    """The results of the paper, read once per process: that takes seconds."""
    import wcll
    from wcll.paper.reproduction import read_reproduction

    folder = Path(wcll.__file__).parents[2] / "results" / "paper"
    if not folder.exists():
        pytest.skip("the result files are not beside the package")
    return read_reproduction(folder)
