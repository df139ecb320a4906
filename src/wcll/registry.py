"""Named things that users pick by name: losses, transition matrices, weightings, models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar, cast

from wcll.checks import choice

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])
G = TypeVar("G", bound=Callable[..., object])


class Registry(Mapping[str, T], Generic[T]):
    """A mapping from names to items whose failed look-ups help and whose duplicate names fail at import.

    >>> colours = Registry[int]("colour")
    >>> colours.put("red", 1)
    >>> colours["rod"]
    Traceback (most recent call last):
    wcll.checks.InputError: colour: expected one of 'red', got 'rod'; did you mean 'red'?
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._items: dict[str, T] = {}

    def put(self, name: str, item: T) -> None:
        """Register ``item`` under ``name``."""
        if name in self._items:
            raise RuntimeError(f"{self.kind} {name!r} is registered twice")
        self._items[name] = item

    def __getitem__(self, name: str) -> T:
        return self._items[choice(self.kind, name, self._items)]

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


class Functions(Registry[F], Generic[F]):
    """A registry of plain functions, filled by decorating them."""

    def add(self, name: str) -> Callable[[G], G]:
        """Decorator: register the function under ``name``."""

        def register(function: G) -> G:
            self.put(name, cast(F, function))
            return function

        return register
