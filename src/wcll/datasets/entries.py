"""The registry of data sets: what each is made of, where it lies and where it can be had."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wcll._validation import Registry
from wcll.datasets.base import Content
from wcll.datasets.checksums import is_sealed, md5
from wcll.exceptions import InputError

Counts = tuple[int, int | None]  # samples for training and for testing


@dataclass(frozen=True)
class Download:
    """A file to be had from the first address that serves it with this checksum."""

    file: str
    md5: str
    urls: tuple[str, ...]
    most: int = 2**30  #: bytes that may come

    @staticmethod
    def of(file: str, md5: str, *folders: str) -> Download:
        """A file that has the same name under every address."""
        return Download(file, md5, tuple(folder + file for folder in folders))

    @property
    def is_archive(self) -> bool:
        """True if the data are what it contains."""
        return self.file.endswith((".tar.gz", ".zip"))


@dataclass(frozen=True)
class DatasetSpec:
    """A data set by name. One with ``installed`` comes with that package and has no files."""

    name: str
    read: Callable[[Path], Content]  #: from the folder that holds the files
    count: Callable[[Path], Counts]  #: the same without reading samples
    folders: tuple[str, ...] = ()  #: names of that folder, tried under each data folder; downloads make the first
    files: tuple[str, ...] = ()  #: what must lie in it; a name in .gz may also be there without
    checksums: Mapping[str, str] = field(default_factory=dict)  #: MD5 of official files by name
    downloads: tuple[Download, ...] = ()
    remedy: str = ""  #: what to do where nothing can be downloaded
    installed: str = ""
    opens: Callable[[Path], list[Path]] | None = None  #: the files that ``read`` reads, if not just ``files``

    def paths(self, folder: Path) -> list[Path]:
        """Every file that is read from the folder."""
        if self.opens is not None:
            return self.opens(folder)
        found = [path for path in (located(folder, name) for name in self.files) if path is not None]
        inside = [path for place in found if place.is_dir() for path in place.rglob("*") if path.is_file()]
        return [path for path in found if not path.is_dir()] + inside

    def find(self, folders: Sequence[Path]) -> Path | None:
        """The first place that has every file.

        A data folder may itself be the one with the files if it bears one of the names or if its files are the official
        ones: several sets use the same file names, so names of files alone do not tell which set it is.
        """
        for folder in folders:
            for name in self.folders:
                if not self.missing(folder / name):
                    return folder / name
            if not self.missing(folder) and (self._is_named(folder) or self.is_official(folder)):
                return folder
        return None

    def missing(self, folder: Path) -> list[str]:
        """The files that are not in the folder."""
        return [name for name in self.files if located(folder, name) is None]

    def is_official(self, folder: Path) -> bool:
        """True if every file has the official checksum, or came from an archive that has."""
        if self.installed:
            return True
        if not self.checksums:
            return any(d.is_archive and is_sealed(folder, d.md5) for d in self.downloads)
        paths = [located(folder, name) for name in self.files]
        if any(path is None or not path.is_file() or path.name not in self.checksums for path in paths):
            return False
        return all(path is not None and md5(path) == self.checksums[path.name] for path in paths)

    def not_found(self, folders: Sequence[Path]) -> InputError:
        """The error that says what was expected, where it was looked for and how to get it."""
        expected = f"{', '.join(self.files)} in a folder {' or '.join(self.folders)}"
        get = f"get it with 'wcll data download {self.name}'" if self.downloads else self.remedy
        got, remedy = self._nearest(folders), f"{get}, or say with --data or WCLL_DATA where it is"
        return InputError(f"dataset {self.name!r}", expected, f"{got} in {', '.join(map(str, folders))}", remedy)

    def _nearest(self, folders: Sequence[Path]) -> str:
        """What was found instead."""
        for place in (folder / name for folder in folders for name in self.folders):
            if len(missing := self.missing(place)) < len(self.files):
                return f"{place} without {', '.join(missing)}, and no other"
        if nameless := [folder for folder in folders if not self.missing(folder)]:
            return f"{nameless[0]} with files of these names, which other sets may have too, and none"
        return "none"

    def _is_named(self, folder: Path) -> bool:
        parts = [part.casefold() for part in folder.resolve().parts]
        names = [Path(name.casefold()).parts for name in self.folders]
        return any(tuple(parts[-len(name) :]) == name for name in names)


def located(folder: Path, name: str) -> Path | None:
    """The file of this name, or the same unpacked."""
    return next((path for path in (folder / name, folder / name.removesuffix(".gz")) if path.exists()), None)


class Datasets(Registry[DatasetSpec]):
    """Data sets by name."""

    def register(self, spec: DatasetSpec) -> DatasetSpec:
        """Add one under its own name."""
        self.put(spec.name, spec)
        return spec


DATASETS = Datasets("dataset")
