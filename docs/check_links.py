"""Check the built site: every link to a page, file or place of it leads somewhere, and nothing comes from other hosts.

python docs/check_links.py docs/_build/html
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: What makes a browser fetch something, by the attribute that names it; a plain link waits for a click.
LOADED = {"src", "srcset", "poster", "data"}


@dataclass
class Page(HTMLParser):
    """The places and links of one page."""

    path: Path
    places: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        self.places |= {values[name] for name in ("id", "name") if name in values}
        for name, value in values.items():
            if name in LOADED or (tag == "link" and name == "href" and values.get("rel") != "canonical"):
                self.loaded.append(value)
            elif name == "href":
                self.links.append(value)


def problems(site: Path) -> Iterator[str]:
    """A line for everything that is wrong."""
    pages = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html")) if "_static" not in path.parts}
    for path, page in pages.items():
        here = path.relative_to(site.resolve())
        for link in page.links + page.loaded:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loaded and parts.scheme != "data":
                    yield f"{here}: loads {link} from another host"
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                yield f"{here}: {link} is not there"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                yield f"{here}: {link} has no such place"


def main(site: Path) -> int:
    found = list(problems(site))
    print("\n".join([*found, f"{len(found)} links of the site lead nowhere or elsewhere"]))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
