"""On which line of a TOML file a setting stands, so that errors can say so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from wcll.exceptions import InputError

Section = tuple[str | int, ...]  #: ("settings",), or ("rows", 2) for the third of several

_TOKEN = re.compile(r"""\"{3}|'{3}|"(?:\\.|[^"\\])*"|'[^']*'|\#""")  # what may hide quotes, or is hidden by them
_ENDS = {'"""': re.compile(r'(?:\\.|[^\\])*?"{3,5}'), "'''": re.compile(r".*?'{3,5}")}
_HEADER = re.compile(r"\s*(\[\[?)\s*([\w.\-\"]+)\s*\]\]?")
_KEY = re.compile(r"\s*[\"']?([\w\-]+)[\"']?\s*[.=]")


class Lines:
    """The lines of a file's sections and keys."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self._places: dict[tuple[Section, str], int] = {}
        section: Section = ()
        seen: dict[str, int] = {}
        inside = ""  # of a text over several lines: the quotes that end it
        for number, line in enumerate(text.split("\n"), 1):  # TOML knows no other ends of lines
            was_inside, inside = inside, _inside_after(line, inside)
            if was_inside:
                continue
            header, key = _HEADER.match(line), _KEY.match(line)
            if header:
                name = header[2].strip('"')
                section = (name,)
                if header[1] == "[[":
                    seen[name] = seen.get(name, -1) + 1
                    section = (name, seen[name])
                self._places[section, ""] = number
            elif key:
                self._places.setdefault((section, key[1]), number)

    def find(self, section: Section, key: str = "") -> int | None:
        """The line of a key in a section, of the section itself without one, None if it is not there."""
        return self._places.get((section, key))

    @contextmanager
    def at(self, section: Section, key: str = "") -> Iterator[None]:
        """Errors in this block are about a key of a section, or about the key that they name."""
        try:
            yield
        except InputError as error:
            named = str(error.got).strip("'")
            places = [
                (section, key),
                (section, named),
                ((named,), ""),
                ((named, 0), ""),
                (section, ""),
                ((*section, 0), ""),
            ]
            self._raise(error, next((line for place in places if (line := self.find(*place))), None))

    @contextmanager
    def somewhere(self, sections: tuple[Section, ...]) -> Iterator[None]:
        """Errors in this block are about the setting that they name, in the first section that has it."""
        try:
            yield
        except InputError as error:
            keys = (error.argument, "")  # the setting; or else a section
            found = [line for key in keys for section in sections if (line := self.find(section, key))]
            self._raise(error, found[0] if found else None)

    def _raise(self, error: InputError, line: int | None) -> None:
        place = f"{self.file}, line {line}" if line else self.file
        raise InputError(f"{place}: {error.argument}", error.expected, error.got, error.remedy) from None


def _inside_after(line: str, inside: str) -> str:
    """The quotes of a text over several lines that goes on after a line, "" if there is none."""
    place = 0
    while True:
        if inside:
            end = _ENDS[inside].match(line, place)
            if end is None:
                return inside
            place, inside = end.end(), ""
        token = _TOKEN.search(line, place)
        if token is None or token[0] == "#":
            return ""
        place, inside = token.end(), token[0] if token[0] in _ENDS else ""
