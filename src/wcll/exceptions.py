"""Exceptions and warnings: bad input in one line, with argument, expectation, value and remedy."""

from __future__ import annotations

LONGEST = 1000  #: characters of anything that a message repeats


class InputError(ValueError):
    """An argument that cannot be used; the message says which, what was expected, what came and what to do."""

    def __init__(self, argument: str, expected: str, got: object, remedy: str = "") -> None:
        self.argument, self.expected, self.got, self.remedy = argument, expected, got, remedy
        message = f"{argument}: expected {short(expected)}, got {short(got)}" + (f"; {short(remedy)}" if remedy else "")
        super().__init__(" ".join(message.split()))  # one line, whatever came

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str, str, str]]:
        return type(self), (self.argument, self.expected, short(self.got), self.remedy)  # it may come from a worker


def short(value: object) -> str:
    """A value as text; of what is very long, the beginning."""
    try:
        text = str(value)
    except ValueError:  # Python writes no number of thousands of digits
        return "a number of too many digits"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text)} characters)"


class InputTypeError(InputError, TypeError):
    """An argument of the wrong type."""


class MissingExtraError(InputError, ImportError):
    """A feature whose optional dependency is not installed."""


class LabelWarning(UserWarning):
    """Labels that contradict what is assumed of them, in one line: the argument, what is wrong, what to do."""
