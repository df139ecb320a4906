"""The reference of a suite's settings, from the fields of :class:`wcll.experiments.trial.Trial` and the registries."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any

from wcll.evaluation import METRICS
from wcll.exceptions import InputError
from wcll.experiments import packaged_suites
from wcll.experiments.suite import SELECTIONS
from wcll.experiments.trial import FIELDS, SETTINGS, Role, Trial
from wcll.losses import LOSSES
from wcll.models import MODELS
from wcll.training.recipe import RECIPES, USUAL, Recipe

#: What the settings of a role decide, in words.
ROLES = {
    Role.DATA: ("Data and labels", "Rows and columns that agree in them share samples and labels."),
    Role.OWN: ("The method", "Runs that train together may differ in them."),
    Role.SHARED: ("Training", "Runs that train together share them."),
}


def settings_page() -> str:
    """The page, as Markdown."""
    comments = field_comments(Trial)
    lines = [
        "# Every setting of a suite",
        "",
        "Made from the source by `make pages`. How a suite is written: [suites](suites.md). Those marked *grid* may",
        "have a list of values in `[grid]`.",
        "",
    ]
    for role, (title, about) in ROLES.items():
        lines += [f"## {title}", "", about, "", "| setting | what it is | values | default |", "|---|---|---|---|"]
        for name in (name for name in SETTINGS if FIELDS[name].role is role and name != "seed"):  # trials count it
            grid = " *grid*" if FIELDS[name].tunable else ""
            lines.append(f"| `{name}`{grid} | {comments[name]} | {expected(name)} | {default(name)} |")
        lines.append("")
    lines += [*_options(), *_recipes(), *_parts()]
    return "\n".join(lines) + "\n"


def field_comments(cls: type) -> dict[str, str]:
    """What stands above or beside each field, as ``#:`` comments."""
    found: dict[str, str] = {}
    above: list[str] = []
    for line in inspect.getsource(cls).splitlines():
        if comment := re.match(r"\s+#: (.*)", line):
            above.append(comment[1])
        elif name := re.match(r"    (\w+): .*?= ", line):
            found[name[1]] = " ".join(above)
            above = []
    return found


def expected(name: str) -> str:
    """What a setting's own reader asks for, in the words in which it refuses anything else."""
    reader = FIELDS[name].read
    assert reader is not None
    try:
        reader(name, [])
    except InputError as error:
        words = error.expected.replace("|", "\\|")
        words = re.sub(r"'([^']+)'", r"`\1`", re.sub(r" from -1e\+06| to 1e\+06| to 1000000000", "", words))
        return words + (", or `none`" if FIELDS[name].nullable else "")
    raise AssertionError(f"{name} takes an empty list")


def default(name: str) -> str:
    """As it would be written."""
    (value,) = (field.default for field in fields(Trial) if field.name == name)
    if value is MISSING:
        return "must be given"
    return "-" if value is None else f"`{value:.4g}`" if isinstance(value, float) else f"`{value}`"


def _options() -> Iterator[str]:
    """Of losses and models, as ``{ name = "...", option = ... }``."""
    yield from ("## Options of losses", "", '`loss = { name = "wcll", base = "mae" }`.', "")
    yield from _option_table("loss", {name: dict(spec.options) for name, spec in LOSSES.items()})
    yield from ("## Options of models", "", '`model = { name = "mlp", hidden = 200 }`.', "")
    yield from _option_table("model", {name: dict(MODELS.options(name)) for name in MODELS})


def _option_table(what: str, options: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield from (f"| {what} | options, with their defaults |", "|---|---|")
    for name, own in options.items():
        if own:
            yield f"| `{name}` | {', '.join(f'`{option} = {_toml(value)}`' for option, value in own.items())} |"
    plain = [f"`{name}`" for name, own in options.items() if not own]
    yield from ("", f"Without options: {', '.join(plain)}.", "") if plain else ("",)


def _recipes() -> Iterator[str]:
    comments = field_comments(Recipe)
    yield from ("## Options of training", "", '`training = { name = "strong", cutout = 8 }`.', "")
    names = " | ".join(f"`{name}`" for name in RECIPES)
    yield from (f"| option | what it is | {names} |", "|---|---|" + "---|" * len(RECIPES))
    for field in fields(Recipe):
        values = " | ".join(f"`{_toml(getattr(recipe, field.name))}`" for recipe in RECIPES.values())
        yield f"| `{field.name}` | {comments[field.name]} | {values} |"
    usual = ", ".join(f"`{name} = {_toml(value)}`" for name, value in USUAL["strong"].items())
    yield from ("", f"What the classifier takes beside `strong` where nothing is given: {usual}.", "")


def _parts() -> Iterator[str]:
    """The rest of a suite's file."""
    metrics = ", ".join(f"`{name}`" for name in METRICS)
    rows = {
        "title, about": "text on one line",
        "trials": "how many seeds, from 0",
        "extends, keep": "a suite that this one goes on from; those of its rows that are kept",
        "[settings]": "settings of all rows and columns",
        "[grid]": "lists of values to choose from; the settings marked *grid*",
        "[[columns]], [[rows]]": "settings of a column or row, and its `title`; these win over the grid's",
        "[[tables]]": f"`title`, `metrics` ({metrics} or `recall_K` of class K), `select` "
        f"({', '.join(f'`{name}`' for name in SELECTIONS)}), `at` (values of the grid that are fixed)",
    }
    yield from ("## The other parts of a file", "", "| part | what it is |", "|---|---|")
    yield from (f"| `{part}` | {about} |" for part, about in rows.items())
    yield from ("", f"Suites of the package: {', '.join(f'`{name}`' for name in sorted(packaged_suites()))}.")


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_toml(item)}" for name, item in value.items()) + " }"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)
