"""What a table of results finds, in one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from wcll.evaluation.metrics import metric_title
from wcll.report.tables import Line, Table
from wcll.suites.suite import Suite

MOST_NAMED = 4  #: columns that a sentence can hold


def finding(suite: Suite, table: Table) -> str:
    """What the default reaches where nothing is told, beside the best of the others; or, without it, who is ahead."""
    autos = [row.title for row in suite.rows if suite.candidates(suite.columns[0], row, 0)[0].auto]
    own = [line for line in table.lines if line.title in autos and line.cells[0].values]
    return _of_default(suite, table, own[0]) if own else _of_best(table)


def _of_default(suite: Suite, table: Table, own: Line) -> str:
    mean, rest = own.cells[0].mean, [line for line in table.lines if line is not own and line.cells[0].values]
    rivals, limits = ([line for line in rest if line.limit == limit] for limit in (False, True))
    parts = []
    if rivals:
        best = max(rivals, key=lambda line: line.cells[0].mean)
        said = _beside(mean, best.cells[0].mean, f"the best of the other methods ({_named(suite, best)})")
        unsure = best.cells[0].undecided or own.cells[0].undecided
        parts.append(said + (", which may be chance," if unsure else ""))
    parts += [_beside(mean, line.cells[0].mean, line.title) for line in limits[:1]]
    told = f"Without a true label, and told nothing but “not this”, {own.title} reaches {100 * mean:.1f} % "
    return told + table.head_texts()[0] + (f": {' and '.join(parts)}." if parts else ".")


def _of_best(table: Table) -> str:
    """Who has the highest figure of the first metric, in how many columns, and how far below the limit it stays."""
    metric = table.heads[0][1]
    places = [i for i, head in enumerate(table.heads) if head[1] == metric]
    rivals = [line for line in table.lines if not line.limit and any(line.cells[i].values for i in places)]
    ahead = Counter(line.title for line in rivals for i in places if line.cells[i].best)
    if len(rivals) < 2 or not ahead:
        return ""
    leaders = [line for line in rivals if ahead[line.title] == max(ahead.values())]
    if len(leaders) > 1:
        return _undecided(table, leaders, places, metric)
    (own,) = leaders
    won = [i for i in places if own.cells[i].best]
    means = [100 * own.cells[i].mean for i in won]
    where = f" in {len(won)} of {len(places)} columns" if len(places) > 1 else ""
    said = f"{own.title} has the highest {metric_title(metric)} of {len(rivals)} methods that learn from complementary "
    said += f"labels{where}, {_span(means)} %"
    if unsure := sum(any(line.cells[i].undecided for line in rivals) for i in won):
        said += ", which may be chance" + (f" in {unsure} of them" if len(won) > 1 else "")
    if limits := [line for line in table.lines if line.limit and line.cells[won[0]].values]:
        points = [100 * (limits[0].cells[i].mean - own.cells[i].mean) for i in won if limits[0].cells[i].values]
        said += f"; {limits[0].title} has {_span(points)} points more"
    return said + "."


def _undecided(table: Table, leaders: Sequence[Line], places: Sequence[int], metric: str) -> str:
    """Several are ahead in equally many columns: which, if they are few."""
    won = [(line, i) for line in leaders for i in places if line.cells[i].best]
    if len(won) > MOST_NAMED:
        names = ", ".join(line.title for line in leaders)
        return f"No one method is ahead: {names} have the highest {metric_title(metric)} in equally many columns."
    each = [f"{line.title} for {table.heads[i][0]} ({100 * line.cells[i].mean:.1f} %)" for line, i in won]
    return f"No one method is ahead: the highest {metric_title(metric)} has {', '.join(each)}."


def _span(values: Sequence[float]) -> str:
    """From the least to the largest, once if they look alike.

    >>> _span([10.21, 9.5]), _span([2.01, 2.0])
    ('9.5 to 10.2', '2.0')
    """
    return " to ".join(dict.fromkeys(f"{value:.1f}" for value in (min(values), max(values))))


def _beside(mean: float, other: float, whom: str) -> str:
    points = round(100 * mean, 1) - round(100 * other, 1)  # as they are shown
    if abs(points) < 0.05:
        return f"as much as {whom}"
    return f"{abs(points):.1f} points {'above' if points > 0 else 'below'} {whom}"


def _named(suite: Suite, line: Line) -> str:
    """A method, and what it is told that others must find out."""
    (row,) = (row for row in suite.rows if row.title == line.title)
    told = suite.candidates(suite.columns[0], row, 0)[0].told
    return line.title + (f", told {' and '.join(told)}" if told else "")
