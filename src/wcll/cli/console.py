"""Output of commands: tables, progress bars, files, and options that several commands have."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from wcll._files import replacing
from wcll.cli import tell, visible
from wcll.exceptions import InputError

ForceOption = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]


class Screen(Console):
    """A console on which text cannot do more than be read."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print text, each line of it visible, and tables that :func:`grid` made."""
        super().print(*(readable(one) if isinstance(one, str | Text) else one for one in objects), **options)


def readable(text: str | Text) -> str | Text:
    """Text of one or several lines without what a terminal would obey."""
    plain = "\n".join(map(visible, str(text).split("\n")))
    return plain if isinstance(text, str) else Text(plain, style=text.style)


def console() -> Console:
    """A console as wide as the terminal, or wide enough for any table where there is none; it prints text as it is."""
    screen = Screen(highlight=False, markup=False, emoji=False)
    if not screen.is_terminal:
        screen.width = 200
    return screen


def grid(
    heads: Iterable[str], rows: Iterable[Iterable[str | Text]], *, right: Container[str] = (), title: Text | None = None
) -> Table:
    """A table without lines; columns of numbers stand on the ``right``."""
    above = None if title is None else readable(title)
    table = Table(box=None, header_style="bold", pad_edge=False, title=above, title_justify="left")
    for head in heads:
        table.add_column(readable(head), justify="right" if head in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(readable, row))
    return table


def print_lines(heads: Sequence[str], rows: Sequence[Sequence[Any]], *, right: Container[str] = ()) -> None:
    """Values under their heads, as many rows as there may be; lines are as long as they are."""
    columns = zip(*rows, strict=True) if rows else ([] for _ in heads)
    aligned = (_aligned(head, column, head in right) for head, column in zip(heads, columns, strict=True))
    lines = map(" ".join, zip(*aligned, strict=True))
    console().print(Text(next(lines), style="bold"), soft_wrap=True)
    sys.stdout.writelines(f"{line}\n" for line in lines)


def _aligned(head: str, values: Sequence[Any], right: bool) -> list[str]:
    """A column as text of one width; what occurs again and again is made once."""
    texts = {value: _text(value) for value in set(values)}
    width = max(map(len, (head, *texts.values())))
    pad = str.rjust if right else str.ljust
    padded = {value: pad(text, width) for value, text in texts.items()}
    return [pad(head, width), *(padded[value] for value in values)]


def _text(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else visible(str(value))


def write_file(path: Path, text: str) -> None:
    """A text to the file that ``--out`` names, whole or not at all."""
    with replacing(path, "--out") as draft:
        draft.write_text(text, encoding="utf-8")


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[float, int], None]]:
    """A bar with the time left on a terminal, plain lines otherwise; both on standard error."""
    if not sys.stderr.isatty():
        yield _lines(what)
        return
    columns = (TextColumn(what), BarColumn(), TaskProgressColumn(), TextColumn("left:"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what)
        yield lambda done, total: bar.update(task, completed=done, total=total)


FIRST_LINE, NEXT_LINE = 3.0, 60.0  # seconds until the first line, and at most between two


def _lines(what: str) -> Callable[[float, int], None]:
    """A line after a few seconds, at every tenth, and every minute.

    The clock of the time left starts after the first step, in which much is prepared that later ones find ready; where
    that alone takes longer than a minute, it is all that there is to tell the time left by.
    """
    begun, first = None, None
    next_time, next_tenth = 0.0, 1

    def say(now: float, done: float, total: int, since: tuple[float, float]) -> None:
        left = (now - since[0]) * (total - done) / (done - since[1])
        tell(f"{what}: {int(100 * done // total)} %, about {duration(left)} left")

    def report(done: float, total: int) -> None:
        nonlocal begun, first, next_time, next_tenth
        now, tenth = time.perf_counter(), int(10 * done // total)
        if begun is None:
            begun = (now, done)
        elif first is None and done != begun[1]:
            first, next_time, next_tenth = (now, done), now + FIRST_LINE, tenth + 1
            if done == total:
                tell(f"{what}: 100 %")
            elif now - begun[0] > NEXT_LINE:
                say(now, done, total, begun)
        elif first is not None and done != first[1] and (tenth >= next_tenth or now >= next_time):
            next_time, next_tenth = now + NEXT_LINE, tenth + 1
            say(now, done, total, first)

    return report


def duration(seconds: float) -> str:
    """``45 s``, ``12 min``, ``3.5 h``.

    >>> duration(45), duration(720), duration(12_600)
    ('45 s', '12 min', '3.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def byte_size(argument: str, text: str) -> int:
    """Bytes from a number with a unit.

    >>> byte_size("--shard", "15MB"), byte_size("--shard", "1.5 kB"), byte_size("--shard", "200")
    (15000000, 1500, 200)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(k|K|M|G)?B?\s*", text)
    size = float(match[1]) * {None: 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9}[match[2]] if match else 0
    if not 0 < size < 1e15:
        raise InputError(argument, "a size such as 15MB", repr(text))
    return int(size)


def time_span(argument: str, text: str) -> float:
    """Seconds from a number with a unit.

    >>> time_span("--max-time", "90s"), time_span("--max-time", "9m"), time_span("--max-time", "1.5 h")
    (90.0, 540.0, 5400.0)
    >>> time_span("--max-time", "45")
    45.0
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(s|m|min|h)?\s*", text)
    seconds = float(match[1]) * {None: 1, "s": 1, "m": 60, "min": 60, "h": 3600}[match[2]] if match else 0.0
    if not 0 < seconds < 1e9:
        raise InputError(argument, "a time such as 90s, 9m or 1.5h", repr(text))
    return seconds
