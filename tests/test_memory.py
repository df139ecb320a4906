"""Memory is asked for before it is taken."""

from __future__ import annotations

import pytest

from wcll._memory import check_memory, free_memory, in_words
from wcll.exceptions import InputError


def test_what_fits_passes_and_what_does_not_is_one_line():
    assert free_memory() > 0
    check_memory("--classes", "a matrix of 10 classes", 800)
    with pytest.raises(
        InputError, match=r"^--classes: expected at most .*B, which is free, got a matrix of 8 EB; fewer$"
    ):
        check_memory("--classes", "a matrix", 8 * 10**18, "fewer")


@pytest.mark.parametrize(("size", "words"), [(0, "0 B"), (999, "999 B"), (10**3, "1 kB"), (10**30, "1000000000000 EB")])
def test_sizes_in_words(size, words):
    assert in_words(size) == words
