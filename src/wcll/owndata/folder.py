"""A model in a folder: its weights, how data become what it takes, and what is said of it; nothing is pickled.

``preprocessing.json`` has a digest of itself and one of the model file: they show damage, and mixed-up files. They do
not show forgery, as whoever changes a file may write another digest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from wcll import __version__
from wcll._files import CHUNK, MODEL, PREPROCESSING, check_file, read_bytes
from wcll._validation import choice, entry
from wcll.estimator import ComplementaryClassifier
from wcll.exceptions import InputError
from wcll.owndata.preprocessing import Preprocessing
from wcll.owndata.sources import Reading, Roles, Samples

FORMAT = "wcll-own-1"
FILES = (MODEL, PREPROCESSING, "card.json", "card.md", "history.csv", "page.html")
MOST_JSON = 2**27  #: bytes
BEGIN = b'{\n "format": "wcll-'  #: how a file begins that :func:`_write_content` wrote
KINDS = ("table", "arrays", "images")


@dataclass(frozen=True, eq=False)
class OwnModel:
    """A fitted classifier, and how a user's data become what it takes."""

    classifier: ComplementaryClassifier
    preprocessing: Preprocessing
    kind: str  #: of the data that it was trained on
    roles: Roles  #: of their columns
    colour: bool | None = None  #: whether images are
    size: tuple[int, int] | None = None  #: that images are brought to
    stamp: str = ""  #: of the data that it was trained on

    def reading(self, **more: Any) -> Reading:
        """How to read data for it."""
        only = tuple(self.preprocessing.kinds) if self.preprocessing.kinds else None
        return Reading(size=self.size, colour=self.colour, only=only, **more)

    def features(self, samples: Samples, *, ignore_unknown: bool = False) -> Any:
        """What the classifier takes."""
        return self.preprocessing.transform(samples.features, ignore_unknown=ignore_unknown)

    def save(self, folder: Path) -> None:
        """Write the model and its preprocessing into a folder."""
        self.classifier.save(folder / MODEL)
        content = {
            "format": FORMAT,
            "wcll": __version__,
            "kind": self.kind,
            "roles": asdict(self.roles),
            "colour": self.colour,
            "size": self.size,
            "stamp": self.stamp,
            "preprocessing": self.preprocessing.to_dict(),
            "model": _file_digest(folder / MODEL),
        }
        _write_content(folder / PREPROCESSING, content)

    @staticmethod
    def load(folder: Path) -> OwnModel:
        """A model that ``wcll train`` wrote; one that is damaged, mixed up or of another kind is refused."""
        if not folder.is_dir():
            check_file(folder, "a folder that wcll train wrote")
            raise InputError("model", "a folder that wcll train wrote", f"{folder}, a file")
        path = folder / PREPROCESSING
        if not path.is_file():
            raise InputError("model", "a folder that wcll train wrote", f"{folder}, without {PREPROCESSING}")
        content = _read_content(path)
        _check_model(folder / MODEL, content)
        try:
            found = _of_content(content, folder / MODEL)
        except InputError as error:
            raise InputError(str(path), "entries that can be used", f"this: {error}") from None
        return found


def is_model_folder(folder: Path) -> bool:
    """Return whether a folder is empty or holds a model and nothing else, so that another may replace it."""
    found = [*folder.iterdir()]
    if any(path.name not in FILES or path.is_symlink() or not path.is_file() for path in found):
        return False
    if not found or folder / PREPROCESSING not in found:
        return not found
    with (folder / PREPROCESSING).open("rb") as file:
        return file.read(len(BEGIN)) == BEGIN


def _file_digest(path: Path) -> str:
    """Of all that a file holds."""
    hasher = blake2b(digest_size=16)
    with path.open("rb") as file:
        while part := file.read(CHUNK):
            hasher.update(part)
    return hasher.hexdigest()


def _check_model(path: Path, content: Mapping[str, Any]) -> None:
    """Fail unless a model file is the one that the preprocessing beside it was written with."""
    check_file(path, "a saved model")
    if _file_digest(path) != entry(content, "model", str):
        got = f"{path}, which is not the one that {PREPROCESSING} was written with"
        raise InputError("model", "an unchanged model file", got, "it is damaged, or of another training")


def _digest(content: Mapping[str, Any]) -> str:
    return blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()


def _write_content(path: Path, content: Mapping[str, Any]) -> None:
    """Write JSON with a digest of itself."""
    written = {**content, "digest": _digest(json.loads(json.dumps(content)))}
    path.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")


def _read_content(path: Path) -> dict[str, Any]:
    """Read JSON that :func:`_write_content` wrote; fail if it was changed."""
    try:
        content = json.loads(read_bytes(path, MOST_JSON))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(str(path), "JSON that wcll train wrote", "something else") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format", "another file") if isinstance(content, dict) else "another file"
        raise InputError(str(path), f"a file of format {FORMAT!r}", found, "train the model with this version")
    if content.pop("digest", None) != _digest(content):
        raise InputError(str(path), "an unchanged file", "contents that do not match their digest")
    return content


def _of_content(content: dict[str, Any], model: Path) -> OwnModel:
    size = entry(content, "size", list | None)
    if size is not None and (len(size) != 2 or any(type(side) is not int or side < 1 for side in size)):
        raise InputError("size", "a width and a height", size)
    preprocessing = Preprocessing.from_dict(entry(content, "preprocessing", dict))
    kind = choice("kind", entry(content, "kind", str), KINDS)
    colour = content.get("colour")
    if colour is not None and not isinstance(colour, bool):
        raise InputError("colour", "true, false or null", colour)
    classifier = ComplementaryClassifier.load(model)
    found = OwnModel(
        classifier,
        preprocessing,
        kind,
        _roles(entry(content, "roles", dict)),
        colour,
        None if size is None else (size[0], size[1]),
        entry(content, "stamp", str),
    )
    if preprocessing.n_features not in (None, classifier.n_features_in_):
        expected = f"{classifier.n_features_in_} features, as the model takes"
        raise InputError("preprocessing", expected, preprocessing.n_features)
    return found


def _roles(plain: dict[str, Any]) -> Roles:
    def names(name: str) -> tuple[str, ...]:
        values = entry(plain, name, list)
        if not all(isinstance(value, str) for value in values):
            raise InputError(name, "names of columns", values)
        return tuple(values)

    one = {name: entry(plain, name, str | None) for name in ("item", "group", "true_label")}
    classes = None if plain.get("classes") is None else names("classes")
    return Roles(names("not_label"), one["item"], one["group"], one["true_label"], names("ignore"), classes)
