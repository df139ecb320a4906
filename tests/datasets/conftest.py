"""Tests of data sets see no data of the user."""

import pytest


@pytest.fixture(autouse=True)
def no_data_of_the_user(tmp_path_factory, monkeypatch):
    home = tmp_path_factory.mktemp("home")
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.delenv("WCLL_DATA", raising=False)
    return home
