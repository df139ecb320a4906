"""scikit-learn's searches on Dask's workers, by the code of the guide."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from small import PATIENCE

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "scaling.md"
pytestmark = [
    pytest.mark.skipif(not GUIDE.exists(), reason="the documentation is not beside the package"),
    pytest.mark.skipif(None in map(find_spec, ("distributed", "cryptography")), reason="the extra is not installed"),
]

SCRIPT = """
import json, sys
import psutil
from sklearn.datasets import load_digits
from wcll.labels import make_complementary
import searches

def ports():
    mine = psutil.Process()
    open_ = [one for who in (mine, *mine.children(recursive=True)) for one in who.net_connections()]
    return {one.laddr.ip.removeprefix("::ffff:") for one in open_ if one.status == psutil.CONN_LISTEN}

if __name__ == "__main__":
    seen, plain = set(), searches.choose
    def watched(*given):
        found = plain(*given)
        seen.update(ports())
        return found
    X, y = load_digits(return_X_y=True)
    given = X[:600] / 16, make_complementary(y, random_state=0)[:600]
    searches.choose = watched
    found = {}
    for name in ("choose", "choose_on_dask"):
        search, scores = getattr(searches, name)(*given)
        found[name] = [search.best_params_, *search.cv_results_["mean_test_score"], *scores]
    print(json.dumps({"found": found, "places": sorted(seen)}))
"""


def test_scores_on_workers_are_those_of_this_process(tmp_path, monkeypatch):
    (code,) = (
        block for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.S) if "parallel_config" in block
    )
    (tmp_path / "searches.py").write_text(code)
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # of workers as of this process
    run = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 0, run.stderr
    said = json.loads(run.stdout.splitlines()[-1])
    plain = said["found"]["choose"]
    assert len(set(plain[1:3])) == 2  # rates that differ, so that equal scores mean something
    assert said["found"] == {"choose": plain, "choose_on_dask": plain}
    assert said["places"] == ["127.0.0.1"]
    assert list((tmp_path / "home").iterdir()) == []
