"""The picture that explains complementary labels: three panels, beside each other or, for phones, below each other."""

from __future__ import annotations

CLASSES = ("fir", "oak", "birch", "beech")
NAMED = (0, 118, 104, 126)  #: how often each is called wrong, in pixels: the true class never
WIDTH, HEIGHT, GAP = 246, 246, 13
STYLE = """\
svg { --paper: #ffffff; --card: #f4f2ec; --ink: #1d2126; --soft: #5c6570; --line: #cfcbc0; --yes: #2f6f3a;
  --no: #b3440a; --bar: #7d98cf; background: var(--paper); font: 14px system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { svg { --paper: #14171b; --card: #20252c; --ink: #e8e9eb; --soft: #a9b1bb;
  --line: #3d444d; --yes: #8fd39b; --no: #f5a062; --bar: #6f8fd0; } }
text { fill: var(--ink); } .soft { fill: var(--soft); font-size: 12.5px; } .head { font-weight: 650; font-size: 15px; }
.card { fill: var(--card); } .chip { fill: none; stroke: var(--line); } .mark { fill: none; stroke-linecap: round; }
.yes { stroke: var(--yes); stroke-width: 2.5; } .no { stroke: var(--no); stroke-width: 2.5; }
.never { stroke-dasharray: 3 3; } .end { text-anchor: end; }
.tree { fill: var(--yes); } .trunk { fill: var(--no); } .bar { fill: var(--bar); }
"""
WHAT = (
    "One picture of a tree. An ordinary label says: it is a fir. A complementary label says: it is not an oak. Over "
    "many pictures like it, oak, birch and beech are named as wrong and fir never is: so a model learns that it is one."
)
TREE = (
    '<polygon class="tree" points="66,70 42,110 90,110"/><polygon class="tree" points="66,92 34,138 98,138"/>'
    '<polygon class="tree" points="66,118 26,172 106,172"/><rect class="trunk" x="60" y="172" width="12" height="20"/>'
)
TICK = '<path class="mark yes" d="M144 81 l5 6 l9 -12"/>'
CROSS = '<path class="mark no" d="M144 109 l12 12 M156 109 l-12 12"/>'


def picture(*, below: bool = False) -> str:
    """The whole picture as SVG; it carries its own background, for light and dark pages."""
    panels = [
        _panel("Ordinary label", "“What is it?”", TREE + _chips(0, "yes") + TICK,
               "says it all; needs somebody", "who knows every class"),
        _panel("Complementary label", "“Name one that it is not.”", TREE + _chips(1, "no") + CROSS,
               "says less; easier to give,", "and reveals less"),
        _panel("Many of them, together", "named as wrong, for trees like it", _bars(),
               "nobody says “not a fir”:", "that is what a model learns"),
    ]  # fmt: skip
    step = (0, HEIGHT + GAP) if below else (WIDTH + GAP, 0)
    placed = [
        f'<g transform="translate({8 + i * step[0]} {8 + i * step[1]})">{one}</g>' for i, one in enumerate(panels)
    ]
    width, height = WIDTH + 16 + 2 * step[0], HEIGHT + 16 + 2 * step[1]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    names = f'<title id="title">Ordinary and complementary labels</title><desc id="what">{WHAT}</desc>'
    body = "\n".join(placed)
    return f'{head} role="img" aria-labelledby="title what">{names}<style>\n{STYLE}</style>\n{body}\n</svg>\n'


def _panel(title: str, asked: str, content: str, *below: str) -> str:
    lines = "".join(f'<text class="soft" x="16" y="{218 + 17 * i}">{line}</text>' for i, line in enumerate(below))
    head = f'<text class="head" x="16" y="28">{title}</text><text class="soft" x="16" y="47">{asked}</text>'
    return f'<rect class="card" width="{WIDTH}" height="{HEIGHT}" rx="10"/>{head}{content}{lines}'


def _chips(marked: int, mark: str) -> str:
    """The classes to choose from, one of them marked."""
    parts = []
    for i, name in enumerate(CLASSES):
        kind = f"chip {mark}" if i == marked else "chip"
        parts.append(f'<rect class="{kind}" x="132" y="{68 + 34 * i}" width="98" height="26" rx="13"/>')
        parts.append(f'<text x="168" y="{86 + 34 * i}">{name}</text>')
    return "".join(parts)


def _bars() -> str:
    parts = []
    for i, (name, length) in enumerate(zip(CLASSES, NAMED, strict=True)):
        y = 72 + 34 * i
        parts.append(f'<text class="end" x="64" y="{y + 14}">{name}</text>')
        parts.append(
            f'<rect class="bar" x="74" y="{y}" width="{length}" height="18"/>'
            if length
            else f'<path class="mark yes never" d="M75 {y} v18"/><text class="soft" x="84" y="{y + 14}">never</text>'
        )
    return "".join(parts)
