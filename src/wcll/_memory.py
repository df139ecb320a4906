"""Free memory, checked before it is taken: what does not fit is one line of error."""

from __future__ import annotations

import psutil

from wcll.exceptions import InputError

SHARE = 0.7  #: of what is free that anything may take, unless the user says how much


def free_memory() -> int:
    """Bytes of this machine that may be used by default: most of what is free now."""
    return int(SHARE * psutil.virtual_memory().available)


def check_memory(argument: str, what: str, size: int, remedy: str = "") -> None:
    """Fail, before it is made, if ``what`` takes more bytes than there are.

    >>> check_memory("--classes", "a matrix of 10 classes", 800)
    """
    if size > (most := free_memory()):
        raise InputError(argument, f"at most {in_words(most)}, which is free", f"{what} of {in_words(size)}", remedy)


def in_words(size: int) -> str:
    """A number of bytes, as people say it; what is not nothing is never called 0.

    >>> in_words(1), in_words(1_500_000), in_words(3 * 10**9)
    ('1 B', '1.5 MB', '3 GB')
    """
    for unit, name in ((10**18, "EB"), (10**15, "PB"), (10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}" if size < 1000 * unit else f"{size // unit} {name}"
    return f"{size} B"
