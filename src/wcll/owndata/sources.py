"""A user's own data, whatever they are: a table, arrays, or a folder of images with a table of them."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wcll._files import CHUNK
from wcll._validation import FloatArray
from wcll.datasets.arrays import checked_samples, load_members, read_arrays
from wcll.datasets.base import in_order, some_names
from wcll.datasets.images import SUFFIXES, Decoding, read_images, unreadable
from wcll.datasets.manifest import MANIFEST, image_paths
from wcll.exceptions import InputError
from wcll.owndata.columns import Column
from wcll.owndata.tables import Table, n_rows, read_table

USUAL = ("not_label", "ybar")  #: a column of labels, if none is named
#: Usual names of columns of true labels, in small letters, words separated by "_".
TRUTHS = {
    *("label", "labels", "true_label", "true_labels", "truelabel", "label_true", "actual_label", "correct_label"),
    *("class", "class_label", "classlabel", "true_class", "actual_class", "target", "target_class", "y", "y_true"),
    *("true_y", "true", "truth", "ground_truth", "groundtruth", "gt", "gold", "gold_label"),
}
NAMED = 0.5  #: the share of cells that name classes from which on a column of text is taken for true labels
ROWS_JUDGED = 10_000  #: rows by which columns are doubted, spread over all
EXPECTED = 10  #: labels of a class, by its share, among the rows of a value that may rule that class out
RULED_OUT = 0.2  #: times what is expected: fewer labels than that rule a class out (mistaken labels are allowed for)
JUDGED = 0.8  #: the share of rows whose values must be frequent enough to be judged
ENDINGS = "a .csv, .parquet or .npz file, or a folder of images with manifest.csv"

Kind = Literal["table", "arrays", "images"]


@dataclass(frozen=True)
class Roles:
    """What columns are for; those that are not named are features."""

    not_label: tuple[str, ...] = ()
    item: str | None = None
    group: str | None = None
    true_label: str | None = None
    ignore: tuple[str, ...] = ()
    classes: tuple[str, ...] | None = None  #: every class, if some may never be named

    def options(self) -> list[tuple[str, str]]:
        """Every column that is named, with the option that names it."""
        one = [("--item", self.item), ("--group", self.group), ("--true-label", self.true_label)]
        named = [*(("--not-label", name) for name in self.not_label), *(("--ignore", name) for name in self.ignore)]
        return [*named, *((option, name) for option, name in one if name is not None)]


@dataclass(frozen=True)
class Counts:
    """What all samples of some data are, where not all are in memory."""

    n: int
    named: Counter[str]  #: how often each class is
    least: int  #: labels of a sample
    most: int
    columns: Mapping[str, tuple[int, int]]  #: missing values, and different categories, of columns of features


@dataclass(frozen=True, eq=False)
class Samples:
    """Features of samples, and what is said of them."""

    kind: Kind
    path: Path
    named: str  #: what tells samples apart: "row", "sample", "path", or the column of items
    names: list[str]
    features: Table | NDArray[Any]
    not_labels: list[tuple[str, ...]] | None = None  #: classes that each is not, none twice
    true: list[str] | None = None  #: "" where nobody knows; for evaluation only
    groups: list[str] | None = None
    classes: tuple[str, ...] | None = None  #: that are declared
    notes: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()  #: images, one a sample
    stamp: str = ""  #: of the bytes of the table or array file, and of every image
    counts: Counts | None = None  #: of all, where these only stand for them
    doubts: tuple[str, ...] = ()  #: columns that may encode true labels, a line each

    def __len__(self) -> int:
        return len(self.names)

    def take(self, rows: Sequence[int]) -> Samples:
        """Some of them, before images are read."""

        def some(values: Any) -> Any:
            return None if values is None else [values[i] for i in rows]

        assert isinstance(self.features, dict)
        return replace(
            self,
            names=some(self.names),
            features={name: column.take(rows) for name, column in self.features.items()},
            not_labels=some(self.not_labels),
            true=some(self.true),
            groups=some(self.groups),
            files=tuple(some(self.files)) if self.files else (),
        )

    def all_classes(self) -> tuple[str, ...]:
        """Those that are declared, or all that labels name, in order."""
        if self.classes is not None:
            return self.classes
        assert self.not_labels is not None
        return in_order([name for names in self.not_labels for name in names])


@dataclass(frozen=True)
class Reading:
    """How to read: which labels are wanted, and what images are made of."""

    labels: bool = True  #: whether complementary labels must be there
    optional: bool = False  #: whether they are taken if they are
    skip_bad: bool = False  #: whether images that cannot be decoded are left out
    size: tuple[int, int] | None = None  #: (width, height) that images are brought to
    colour: bool | None = None
    only: tuple[str, ...] | None = None  #: columns that are features, if that is known
    usual_item: str | None = None  #: the column of items, if it is there and none is named
    labels_in: Path | None = None  #: another table that has the labels, by item
    too_large: str = ""  #: what to do about data that do not fit into memory


def read_samples(path: Path, roles: Roles, reading: Reading) -> Samples:
    """Samples of a table, of arrays, or of a folder of images."""
    if path.is_dir():
        return _read_folder(path, roles, reading)
    if path.suffix == ".npz":
        return _read_arrays(path, roles, reading)
    if path.suffix not in (".csv", ".parquet"):
        raise InputError("data", ENDINGS, str(path))
    table = read_table(path, reading.too_large)
    samples = of_table(path, table, check_roles(path, table, roles, reading), reading)
    return replace(samples, stamp=stamp_of([path, *([reading.labels_in] if reading.labels_in else [])]))


def check_roles(path: Path, table: Mapping[str, Any], roles: Roles, reading: Reading) -> Roles:
    """Columns that are named are there, each for one purpose; labels are found by their usual name if none is named."""
    if roles.item is None and reading.usual_item in table:
        roles = replace(roles, item=reading.usual_item)
    if reading.labels_in is not None:
        roles = _check_labels_elsewhere(table, roles, reading)
    elif not roles.not_label and (reading.labels or reading.optional):
        usual = tuple(name for name in USUAL if name in table)[:1]
        if not usual and reading.labels:
            remedy = "say which column holds classes that a row is NOT"
            if reading.optional:
                remedy += "; --true-label takes true classes instead"
            raise InputError("--not-label", f"one of the columns {_columns(table)}", "none", remedy)
        roles = replace(roles, not_label=usual)
    named = roles.options()
    for option, name in named:
        if name not in table:
            raise InputError(option, f"one of the columns {_columns(table)}", repr(name))
        if [other for _, other in named].count(name) > 1:
            raise InputError(option, "a column for one purpose", f"{name!r} twice")
    return roles


def _check_labels_elsewhere(table: Mapping[str, Any], roles: Roles, reading: Reading) -> Roles:
    """Items are named where another table has the labels, and there are no others."""
    if roles.not_label:
        raise InputError("--not-label", "none beside --labels", repr(roles.not_label[0]))
    if roles.item is None and "item" not in table:
        raise InputError("--item", f"one of the columns {_columns(table)}", "none", "say which column names items")
    if own := [name for name in USUAL if name in table and name not in roles.ignore and reading.only is None]:
        remedy = f"leave it out: --ignore {own[0]}"
        raise InputError("--labels", "data without labels of their own", f"column {own[0]!r}", remedy)
    return replace(roles, item=roles.item or "item")


def _columns(table: Mapping[str, Any]) -> str:
    return some_names([repr(name) for name in table])


def of_table(path: Path, table: Table, roles: Roles, reading: Reading) -> Samples:
    """Samples of the columns of a table, each in its role."""
    known, n = roles.classes, n_rows(table)
    not_labels = _not_labels(path, table, roles, known) if roles.not_label else None
    true = [table[roles.true_label].labels(known)] if roles.true_label else []
    groups = names_in(table[roles.group], "group") if roles.group else None
    special = {name for _, name in roles.options()}
    wanted = [name for name in table if name not in special] if reading.only is None else reading.only
    samples = Samples(
        kind="table",
        path=path,
        named="row",
        names=[str(i + 1) for i in range(n)],
        features={name: table[name] for name in wanted if name in table},
        not_labels=not_labels,
        true=[_one(path, names, i) for i, names in enumerate(true[0])] if true else None,
        groups=groups,
        classes=known,
    )
    if roles.item is not None:
        samples = _by_item(samples, names_in(table[roles.item], "item"), roles.item)
    if reading.labels_in is not None:
        samples = _with_labels(samples, reading.labels_in)
    if samples.not_labels is not None and (reading.labels or any(samples.not_labels)):
        check_labels(samples)
    elif samples.not_labels is not None:
        samples = replace(samples, not_labels=None)
    return samples


def _not_labels(path: Path, table: Table, roles: Roles, known: Sequence[str] | None) -> list[tuple[str, ...]]:
    """The labels of every row in all columns, each class once."""
    columns = [table[name].labels(known) for name in roles.not_label]
    return [tuple(dict.fromkeys(name for names in row for name in names)) for row in zip(*columns, strict=True)]


def _one(path: Path, names: tuple[str, ...], row: int) -> str:
    if len(names) > 1:
        raise InputError(str(path), "one true label a row", f"{len(names)} in row {row + 1}")
    return names[0] if names else ""


def names_in(column: Column, what: str) -> list[str]:
    """The names of items or groups in a column, one a row."""
    texts = column.texts()
    if "" in texts:
        raise InputError(
            str(column.path),
            f"a value in every row of column {column.name!r}, the {what}",
            f"none in row {texts.index('') + column.first}",
        )
    return texts


def _by_item(samples: Samples, items: list[str], named: str) -> Samples:
    """Rows of one item as one sample: its features are the same in all of them, its labels are put together."""
    rows: dict[str, list[int]] = {}
    for row, item in enumerate(items):
        rows.setdefault(item, []).append(row)
    first = [some[0] for some in rows.values()]
    assert isinstance(samples.features, dict)
    for column in samples.features.values():
        _check_same(samples.path, column, rows)
    labels, true, groups = samples.not_labels, samples.true, samples.groups
    joined = None
    if labels is not None:
        joined = [tuple(dict.fromkeys(name for row in some for name in labels[row])) for some in rows.values()]
    return replace(
        samples,
        named=named,
        names=list(rows),
        features={name: column.take(first) for name, column in samples.features.items()},
        not_labels=joined,
        true=None if true is None else [next((true[i] for i in some if true[i]), "") for some in rows.values()],
        groups=None if groups is None else [groups[row] for row in first],
    )


def _with_labels(samples: Samples, path: Path) -> Samples:
    """Those that another table has labels of, with these; how many have none is said."""
    if path.suffix not in (".csv", ".parquet"):
        raise InputError("--labels", "a .csv or .parquet table with columns item and not_label", str(path))
    table = read_table(path)
    if missing := [name for name in ("item", "not_label") if name not in table]:
        raise InputError(str(path), f"a column {missing[0]}", _columns(table))
    found: dict[str, dict[str, None]] = {}
    named = names_in(table["item"], "item")
    for item, labels in zip(named, table["not_label"].labels(samples.classes), strict=True):
        found.setdefault(item, {}).update(dict.fromkeys(labels))
    rows = [i for i, name in enumerate(samples.names) if found.get(name)]
    if not rows:
        got = f"none of {len(found)}, such as {next(iter(found))!r}"
        expected = f"labels of items such as {samples.names[0]!r} of {samples.path.name}"
        raise InputError(str(path), expected, got, "wcll labels import --item FIELD names items by a field of tasks")
    labelled = replace(samples.take(rows), not_labels=[tuple(found[samples.names[i]]) for i in rows])
    notes = []
    if lacking := len(samples) - len(rows):
        notes.append(f"{lacking} of {len(samples)} items have no label in {path.name}, and are left out")
    if odd := len(found) - len(rows) - sum(not names for names in found.values()):
        notes.append(f"{odd} items of {path.name} are not in {samples.path.name}")
    return replace(labelled, notes=(*samples.notes, *notes))


def _check_same(path: Path, column: Column, rows: Mapping[str, Sequence[int]]) -> None:
    values = column.values
    for item, some in rows.items():
        for row in some[1:]:
            same = values[row] == values[some[0]] or (values[row] != values[row] and values[some[0]] != values[some[0]])
            if not same:
                got = f"{values[some[0]]!r} and {values[row]!r} (rows {some[0] + 1} and {row + 1})"
                remedy = f"leave it out: --ignore {column.name}"
                raise InputError(str(path), f"one value of column {column.name!r} for item {item!r}", got, remedy)


def labels_of(samples: Samples) -> Any:
    """Complementary labels as an estimator takes them: one name a sample, or lists."""
    assert samples.not_labels is not None
    if all(len(names) == 1 for names in samples.not_labels):
        return np.array([names[0] for names in samples.not_labels])
    return [list(names) for names in samples.not_labels]


def check_categories(features: Any, names: Sequence[str], option: str = "--category") -> None:
    """Fail unless columns of features have these names."""
    for name in names:
        if isinstance(features, np.ndarray) or name not in features:
            raise InputError(option, "the name of a column of features", repr(name))


def check_no_truth(samples: Samples, kept: Collection[str]) -> Samples:
    """Refuse features that look like true labels, which no training may see; note those that may encode them.

    A column is refused if it has a usual name of true labels, or if it is text of which half the cells name classes.
    ``kept`` are columns that a user has named as features.
    """
    if not isinstance(samples.features, dict):
        return samples
    classes = {name.casefold() for name in samples.all_classes()}
    for name, column in samples.features.items():
        if name in kept:
            continue
        if re.sub(r"\W+", "_", name.casefold()).strip("_") in TRUTHS:
            got, question = f"column {name!r}, a usual name of true labels", "is it one?"
        elif example := _class_in_most_cells(column, classes):
            got, question = f"column {name!r} holds names of classes, such as {example!r}", "is it a true label?"
        else:
            continue
        option = shlex.quote(name)
        remedy = f"{question} leave it out: --ignore {option} (--feature {option} keeps it)"
        raise InputError(str(samples.path), "columns of features", got, remedy)
    return replace(samples, doubts=tuple(_encoded_truths(samples, kept)))


def _class_in_most_cells(column: Column, classes: Collection[str]) -> str | None:
    """Return a class that a column of text names, if half of the cells with text name classes, unless all are alike."""
    if column.kind != "text":
        return None
    cells = Counter(column.texts())
    constant = len(cells) == 1
    del cells[""]
    named = [text for text in cells if text.casefold() in classes]
    often = sum(cells[text] for text in named) >= NAMED * cells.total()
    return named[0] if named and often and not constant else None


def _encoded_truths(samples: Samples, kept: Collection[str]) -> Iterator[str]:
    """Yield a line for each column whose values rule out classes, as those of an encoded true label do."""
    assert isinstance(samples.features, dict)
    assert samples.not_labels is not None
    rows = np.unique(np.linspace(0, len(samples) - 1, ROWS_JUDGED).astype(int))
    classes = samples.all_classes()
    place = {name: k for k, name in enumerate(classes)}
    labels = np.zeros((len(rows), len(classes)))
    for i, row in enumerate(rows):
        labels[i, [place[name] for name in samples.not_labels[row]]] = 1
    for name, column in samples.features.items():
        if name in kept or column.kind not in ("number", "text"):
            continue
        texts = np.array(column.take(rows).texts(), object)
        there = texts != ""
        values, value_of = np.unique(texts[there], return_inverse=True)
        if len(values) > 1 and (found := _value_and_class(value_of, labels[there])) is not None:
            value, k = found
            option = shlex.quote(name)
            yield (
                f"{name}: each value of this column rules out a class (where it is {values[value]!r}, {classes[k]!r} "
                f"is hardly ever named): does it encode the true label? leave it out: --ignore {option} "
                f"(--feature {option} keeps it)"
            )


def _value_and_class(value_of: NDArray[np.intp], labels: FloatArray) -> tuple[int, int] | None:
    """Return a value and a class that it rules out, if every frequent value but one at most rules out some class.

    No label names the class of its sample. So where a value stands for a class, no label of its rows names that class;
    a feature that is merely informative leaves every class some labels.
    """
    size = np.bincount(value_of)
    named = np.stack([np.bincount(value_of, column, len(size)) for column in labels.T], axis=1)
    expected = size[:, None] * labels.mean(axis=0)
    frequent = (expected >= EXPECTED).any(axis=1)
    rules_out = (expected >= EXPECTED) & (named <= RULED_OUT * expected)
    decided = rules_out.any(axis=1)
    if size[frequent].sum() < JUDGED * size.sum() or np.count_nonzero(frequent & ~decided) > 1:
        return None
    if np.count_nonzero(decided) < 2 or 2 * np.count_nonzero(rules_out.any(axis=0)) < labels.shape[1]:
        return None  # a code of the true class rules out nearly all classes, each by a value
    value = int(decided.argmax())
    return value, int(rules_out[value].argmax())


def check_labels(samples: Samples) -> None:
    """Fail unless every sample has a label, of a class that there is, and a class that is left."""
    labels = samples.not_labels
    assert labels is not None
    wrong = WrongLabels(samples.path, samples.named)
    for name, names in zip(samples.names, labels, strict=True):
        if not names:
            raise wrong.none(name, sum(not some for some in labels))
    classes = samples.all_classes()
    wrong.check_classes(classes)
    known = set(classes)
    for name, names in zip(samples.names, labels, strict=True):
        if odd := [one for one in names if one not in known]:
            raise wrong.odd(name, odd[0], classes)
        if len(names) == len(classes):
            raise wrong.all_classes(name, classes)


@dataclass(frozen=True)
class WrongLabels:
    """What is said of labels that cannot be learnt from."""

    path: Path
    named: str  #: what tells samples apart

    def none(self, name: str, lacking: int) -> InputError:
        """A sample has no label; ``lacking`` of them have none."""
        got = f"none of {self.named} {name} ({lacking} without)"
        return InputError(str(self.path), f"a label of every {self.named}", got)

    def check_classes(self, classes: Sequence[str]) -> None:
        """Fail if there is one class only."""
        if len(classes) < 2:
            raise InputError(str(self.path), "labels of at least two classes", some_names(classes))

    def odd(self, name: str, label: str, classes: Sequence[str]) -> InputError:
        """A label is of no class that there is."""
        return InputError(str(self.path), f"labels among {some_names(classes)}", f"{label!r} in {self.named} {name}")

    def all_classes(self, name: str, classes: Sequence[str]) -> InputError:
        """The labels of a sample leave no class."""
        got = f"all {len(classes)} ruled out of {self.named} {name}"
        remedy = "name every class with --classes, if there are more"
        return InputError(str(self.path), "a class that is left", got, remedy)


def _read_arrays(path: Path, roles: Roles, reading: Reading) -> Samples:
    """Arrays x and ybar; y, groups and classes if there are any."""
    named = [(option, name) for option, name in roles.options() if option != "--true-label"]
    named += [("--labels", str(reading.labels_in))] if reading.labels_in else []
    if named or roles.classes:
        option, name = (named or [("--classes", some_names(roles.classes or ()))])[0]
        raise InputError(option, "none for an .npz file, whose arrays are x, ybar, y, groups and classes", repr(name))
    if roles.true_label not in (None, "y"):
        raise InputError("--true-label", "'y', the array of true labels", repr(roles.true_label))
    there = load_members(path, ("x",), ("ybar", "y"))
    for name, needed in (("ybar", reading.labels), ("y", roles.true_label)):
        if needed and name not in there:
            raise InputError(str(path), f"an array {name}", "none")
    names = [str(i) for i in range(len(there["x"]))]
    if not set(there) & {"ybar", "y"} or not (reading.labels or reading.optional or roles.true_label):
        x = _images_first(checked_samples(path, "x", there["x"]))
        return Samples("arrays", path, "sample", names, x, stamp=stamp_of([path]))
    content = read_arrays(path)
    split, classes = content.train, content.classes
    samples = Samples("arrays", path, "sample", names, _images_first(split.x), classes=classes, stamp=stamp_of([path]))
    if split.ybar is not None and (reading.labels or reading.optional):
        lists = [[k] for k in split.ybar] if split.ybar.ndim == 1 else [np.flatnonzero(row) for row in split.ybar]
        samples = replace(samples, not_labels=[tuple(classes[k] for k in some) for some in lists])
    groups = None if split.groups is None else [str(one) for one in split.groups.tolist()]
    true = [classes[k] if k >= 0 else "" for k in split.y] if roles.true_label else None
    return replace(samples, groups=groups, true=true)


def _images_first(x: NDArray[Any]) -> NDArray[Any]:
    """Grey images with an axis of one channel, as networks take them."""
    return x[:, None] if x.ndim == 3 else x


def _read_folder(path: Path, roles: Roles, reading: Reading) -> Samples:
    """Images of a folder, with what is said of them."""
    samples = read_manifest(path, roles, reading)
    images = read_images(samples.files, reading.colour, reading.size, reading.too_large)
    return replace(samples, features=_images_first(images), stamp=images_stamp(path, samples, reading))


def images_stamp(path: Path, samples: Samples, reading: Reading) -> str:
    """Of the tables that name images, and of these."""
    tables = [one for one in (path / MANIFEST, reading.labels_in) if one is not None and one.is_file()]
    return stamp_of([*tables, *samples.files])


def image_parts(path: Path, roles: Roles, reading: Reading) -> Iterator[Samples]:
    """Images of a folder, some at a time; they need not have labels."""
    samples = read_manifest(path, roles, reading)
    decoding = Decoding.of(samples.files, reading.colour, reading.size)
    for rows in decoding.parts():
        yield replace(samples.take(rows), features=_images_first(decoding.read(rows)))


def read_manifest(path: Path, roles: Roles, reading: Reading) -> Samples:
    """What the table manifest.csv says of images, which are not read; its columns are labels and groups."""
    manifest = path / MANIFEST
    table = read_table(manifest) if manifest.is_file() else _all_images(path, reading)
    if "path" not in table:
        raise InputError(str(manifest), "a column path", _columns(table))
    if roles.group is None:
        roles = replace(roles, group=next((name for name in ("group", "case") if name in table), None))
    reading = replace(reading, only=())
    roles = check_roles(manifest, table, replace(roles, item=roles.item or "path"), reading)
    if roles.item != "path":
        raise InputError("--item", "'path' for a folder of images", repr(roles.item))
    samples = of_table(manifest, table, roles, reading)
    if odd := [name for name in samples.names if "\0" in name]:
        raise InputError(str(manifest), "paths of files", repr(odd[0]))
    samples = replace(samples, kind="images", files=tuple(image_paths(path, samples.names)))
    return _without_bad(samples) if reading.skip_bad else samples


def _all_images(path: Path, reading: Reading) -> Table:
    """What a manifest would say of a folder without one: every image in it; labels are elsewhere, or not needed."""
    if reading.labels and reading.labels_in is None:
        raise InputError("data", ENDINGS, f"{path}, a folder without {MANIFEST}")
    found = sorted(one.relative_to(path).as_posix() for one in path.rglob("*") if one.suffix.lower() in SUFFIXES)
    if not found:
        raise InputError("data", f"images in the folder, or {MANIFEST}", f"{path}, without any")
    return {"path": Column(path, "path", found, "text")}


def _without_bad(samples: Samples) -> Samples:
    """Those whose images can be decoded; the others are counted, and the first is named."""
    bad = unreadable(samples.files)
    if len(bad) == len(samples):
        raise next(iter(bad.values()))
    if not bad:
        return samples
    note = f"{len(bad)} of {len(samples)} images cannot be decoded and are left out, first {samples.names[min(bad)]}"
    rest = samples.take([i for i in range(len(samples)) if i not in bad])
    return replace(rest, notes=(*samples.notes, note))


def stamp_of(paths: Sequence[Path]) -> str:
    """A digest of what files hold, in order."""
    hasher = blake2b(digest_size=16)
    for path in paths:
        with path.open("rb") as file:
            while part := file.read(CHUNK):
                hasher.update(part)
        hasher.update(b"|")
    return hasher.hexdigest()


def counts_of(samples: Samples) -> Counts:
    """What these are, where they are all; their columns can be looked at."""
    labels = samples.not_labels or []
    lengths = [len(names) for names in labels]
    named = Counter(name for names in labels for name in names)
    return Counts(len(samples), named, min(lengths), max(lengths), {})
