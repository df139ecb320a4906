"""The paper's claims, and whether they hold in what we measured: tables, images, mammograms.

Each claim is a function that asks a question of figures; :mod:`wcll.paper.reproduction` asks it of every protocol that
the printed numbers allow, or of every one that was run in full, and makes one verdict of the answers. Differences of
methods are tested over trials, whose runs share draws (paired t-test, Holm over all comparisons of a claim, 5 %). The
words are those of ``templates/claims.txt``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from statistics import fmean

from wcll.paper.comparison import FORMULAS, METHODS, RIVALS, Part, show_name
from wcll.paper.protocols import LEAST, MARGIN, N_PROTOCOLS, Means, Question, noise_of_leads
from wcll.paper.reproduction import (
    CLAIMS,
    ENOUGH,
    FAILS,
    HOLDS,
    PROTOCOL_NAMES,
    RARE,
    UNTOLD,
    Answer,
    Claim,
    Judged,
    Reproduction,
    World,
    ahead_everywhere,
    change_between,
    claim,
    claim_on_means,
    claim_on_worlds,
    gap,
    leads,
    means,
    pooled_spreads,
    printed_settings,
    say,
    signs,
    verdict_of,
    verdict_over_worlds,
)
from wcll.report.result_tables import Cell, Table

CLASSES = {"recall_0": "normal", "recall_1": "benign", "recall_2": "cancer"}
RARE_RECALLS = ("recall_1", "recall_2")
GUESSING = 1 / 3  #: of three classes


def best_in_all_classes(part: Part) -> Judged:
    """ "surpassing all baseline methods across all classes"."""
    if (few := _too_few(part)) is not None:
        return few
    answers, seen = [], []
    for protocol, name in PROTOCOL_NAMES.items():
        gaps = {
            (method, metric): gap(
                _cell(part, protocol, "wcll", metric), _cell(part, protocol, method, metric), _n(part)
            )
            for metric in CLASSES
            for method in RIVALS
        }
        found = dict(zip(gaps, signs(list(gaps.values())), strict=True))
        answers.append(_all_above(list(found.values())))
        counts = (f"{CLASSES[metric]} {_ahead(found, metric)} of {len(RIVALS)}" for metric in CLASSES)
        seen.append(f"By {name} WCLL is significantly ahead of the baselines on {', '.join(counts)}.")
    normals = {method: value for method in METHODS if (value := _printed_normals(part, method)) is not None}
    own = normals.pop("wcll")
    printed = (
        f"By the paper's own table, as 3 total - benign - cancer, WCLL has {own:.1f} on normals and the others that "
        f"print all three figures {min(normals.values()):.1f} to {max(normals.values()):.1f}: it is the lowest."
    )
    return verdict_of(answers), " ".join([*seen, *([printed] if own < min(normals.values()) else [])])


def baselines_fail(part: Part) -> Judged:
    """ "all baseline methods failed to improve accuracy on both classes": none beats guessing on benign and cancer."""
    if (few := _too_few(part)) is not None:
        return few
    answers, seen = [], []
    for protocol, name in PROTOCOL_NAMES.items():
        places = [(method, metric) for method in RIVALS for metric in RARE_RECALLS]
        found = signs([gap(_cell(part, protocol, *place), GUESSING, _n(part)) for place in places])
        by_method = {method: found[2 * i : 2 * i + 2] for i, method in enumerate(RIVALS)}
        good = [method for method, both in by_method.items() if both == [1, 1]]
        failed = [method for method, both in by_method.items() if -1 in both]
        answers.append(False if good else True if len(failed) == len(RIVALS) else None)
        above = f"; above it on both: {', '.join(map(show_name, good))}" if good else ""
        of = f"{len(failed)} of {len(RIVALS)} baselines"
        seen.append(f"By {name} {of} are significantly below guessing on benign or cancer{above}.")
    return verdict_of(answers), " ".join(seen)


def margin(part: Part, metric: str) -> Judged:
    """The printed margin of WCLL over the best baseline on one class: +43.08 on benign, +0.77 on cancer.

    It holds where ours is surely above 0 and the printed one is within its interval, and not where that is outside.
    """
    if (few := _too_few(part)) is not None:
        return few
    print_of = {method: one.mean / 100 for (method, _), one in part.all_printed[metric].items()}
    theirs = print_of["wcll"] - max(value for method, value in print_of.items() if method != "wcll")
    answers: list[Answer] = []
    seen = [f"The paper prints {100 * theirs:+.2f} points on {CLASSES[metric]}."]
    for protocol, name in PROTOCOL_NAMES.items():
        best = max(RIVALS, key=lambda method: _cell(part, protocol, method, metric).mean)
        ours = gap(_cell(part, protocol, "wcll", metric), _cell(part, protocol, best, metric), _n(part))
        low, high = ours.interval
        answers.append(False if not low <= theirs <= high else True if low > 0 else None)
        seen.append(f"By {name} it is {ours.text()} over {show_name(best)}.")
    return verdict_of(answers), " ".join(seen)


def _too_few(part: Part) -> Judged | None:
    """What is said where nothing can be."""
    if lacking := [method for method in METHODS if method not in part.methods]:
        return UNTOLD, f"Can't be told yet: {', '.join(map(show_name, lacking))} was not run."
    trials = min(
        len(_cell(part, protocol, method, metric).values)
        for protocol, method, metric in product(PROTOCOL_NAMES, METHODS, CLASSES)
    )
    return None if trials >= LEAST else (UNTOLD, say("claims", "too_few", part.trials > 0, trials, LEAST, None, 0))


def _all_above(found: Sequence[int]) -> Answer:
    return False if -1 in found else None if 0 in found else True


def _ahead(found: dict[tuple[str, str], int], metric: str) -> int:
    """Of how many rivals WCLL is ahead on a class."""
    return sum(sign == 1 for (_, of), sign in found.items() if of == metric)


def _cell(part: Part, protocol: str, method: str, metric: str) -> Cell:
    return part.cell(protocol, method, part.columns[0], metric)


def _n(part: Part) -> int:
    """Test images of a class, in a trial."""
    return int(part.suite.settings["test_per_class"])


def _printed_normals(part: Part, method: str) -> float | None:
    """What the paper's table implies for normals, where it prints all three figures: its classes are of equal size."""
    found = [printed.get((method, part.columns[0])) for printed in part.all_printed.values()]
    total, benign, cancer = (None if one is None else one.mean for one in found)
    return None if total is None or benign is None or cancer is None else 3 * total - benign - cancer


def _of_table7(judge: Callable[[Part], Judged]) -> Callable[[Reproduction], Judged]:
    """The same of all that was found, in which table 7 may be missing."""

    def judged(found: Reproduction) -> Judged:
        part = found.images.get("table7")
        return judge(part) if part is not None else (UNTOLD, say("claims", "too_few", False, 0, LEAST, None, 0))

    return judged


#: By statement, how it is judged.
ON_DDSM: dict[str, Callable[[Reproduction], Judged]] = {
    "On mammograms WCLL surpasses all baselines across all classes (results on table 7).": _of_table7(
        best_in_all_classes
    ),
    "On mammograms all baselines fail on benign or cancer: none is above guessing on both.": _of_table7(baselines_fail),
    "WCLL is 43.08 points ahead of the best baseline on benign mammograms.": _of_table7(
        partial(margin, metric="recall_1")
    ),
    "WCLL is 0.77 points ahead of the best baseline on mammograms of cancer.": _of_table7(
        partial(margin, metric="recall_2")
    ),
}

#: Test images, and those of one class: accuracies have their sampling error however many trials there are.
TEST_IMAGES = {"cifar10": (5000, 1000), "tiny-imagenet": (250, 50)}


def sure_leads(pairs: Sequence[tuple[Cell, Cell]], images: int) -> list[int]:
    """Of each pair whether the first is surely above (1) or below (-1) the second, or neither (0)."""
    return signs([gap(first, second, images) for first, second in pairs])


def readings(part: Part) -> dict[str, Table]:
    """The ways to read its runs: at each rate the last epoch and the best by TEST, and the fair protocol."""
    last = {f"the last epoch at {lr:g}": table for lr, table in part.rates.items()}
    best = {f"the best epoch by TEST at {lr:g}": table for lr, table in part.best_rates.items()}
    return {**last, **best, PROTOCOL_NAMES["fair"]: part.tables["fair"]}


def _first(dataset: str, found: Reproduction) -> Judged:
    """Whether WCLL is ahead of all nine rivals in every setting that the paper prints of a data set."""
    parts = [part for part in found.images.values() if part.suite.settings["dataset"] == dataset and part.printed]
    columns = printed_settings(dataset, (2, 3, 4))
    best = sum(max(column, key=lambda one: one.mean).method == "wcll" for column in columns)
    pairs: dict[tuple[str, str], list[tuple[Cell, Cell]]] = {}
    for part, own in product(parts, FORMULAS):
        for how, table in readings(part).items():
            pairs.setdefault((own, how), []).extend(
                (table.cell(own, column, "accuracy"), table.cell(rival, column, "accuracy"))
                for column, rival in product(part.printed_columns, RIVALS)
            )
    return _judged(pairs, TEST_IMAGES[dataset][0], len(columns) * len(RIVALS), best, len(columns))


def _rare(found: Reproduction) -> Judged:
    """Whether WCLL is ahead on the imbalanced class in the panels of CIFAR-10, at the last epoch and the fair one."""
    pairs: dict[tuple[str, str], list[tuple[Cell, Cell]]] = {}
    panels = 0
    if (part := found.images.get("table2-cifar10")) is not None:
        panels = len(part.printed_columns)
        for own, how in product(FORMULAS, PROTOCOL_NAMES):
            pairs[own, PROTOCOL_NAMES[how]] = [
                (part.cell(how, own, column, "minority_recall"), part.cell(how, rival, column, "minority_recall"))
                for column, rival in product(part.printed_columns, ("pc", "l-w", "nn"))
            ]
    return _judged(pairs, TEST_IMAGES["cifar10"][1], 3 * panels, None, panels)


def _judged(
    pairs: Mapping[tuple[str, str], Sequence[tuple[Cell, Cell]]],
    images: int,
    comparisons: int,
    best: int | None,
    columns: int,
) -> Judged:
    """One answer for each formula and way to read the runs: yes if it leads in all pairs, no if it is behind in one."""
    trials = [min(len(cell.values) for pair in some for cell in pair) for some in pairs.values() if some]
    complete = bool(trials) and all(len(some) == comparisons for some in pairs.values())
    if not complete or min(trials) < LEAST:
        fewest = min(trials, default=0) if complete else 0
        begun = any(cell.values for some in pairs.values() for pair in some for cell in pair)
        return UNTOLD, say("claims", "too_few", begun, fewest, LEAST, best, columns)
    leads = {place: sure_leads(some, images) for place, some in pairs.items()}
    answers: list[Answer] = [False if -1 in some else True if all(some) else None for some in leads.values()]
    counts = {
        f"{show_name(own)} by {how}": (some.count(1), some.count(-1), len(some)) for (own, how), some in leads.items()
    }
    return verdict_of(answers), say("claims", "on_images", counts, min(trials), images, best, columns)


#: By statement, how it is judged.
ON_IMAGES: dict[str, Callable[[Reproduction], Judged]] = {
    "WCLL is ahead of all nine rivals in every CIFAR-10 setting (tables 2, 3 and 4).": partial(_first, "cifar10"),
    "WCLL is ahead of all nine rivals in every Tiny-ImageNet setting (table 2).": partial(_first, "tiny-imagenet"),
    "WCLL is ahead of PC, L-W and NN on the imbalanced class of CIFAR-10 (figure 3's other three panels).": _rare,
}

NOTICEABLE = 2.0  #: points: what is less is called the same
LARGE = 10.0  #: points: what is more is called a large loss
#: Other forms of methods, which the paper may have meant.
FORMS = {"ncll": ("ncll", "ncll, no ascent"), "ml-cll": ("ml-cll", "ml-cll, GDF")}


def judge_all(found: Reproduction) -> list[Claim]:
    """Every claim with its verdict."""
    return [Claim(statement, *judge(found)) for statement, judge in CLAIMS.items()]


def lead_question(found: Reproduction, lead: Callable[[Means], float]) -> Question:
    """Whether the smallest lead is above 0; open within the noise of the search's trials."""
    noise = MARGIN * noise_of_leads(found, found.search.trials if found.search else 1)

    def question(figures: Means) -> Answer:
        points = lead(figures)
        return None if abs(points) <= noise else points > 0

    return question


def first_by(figures: Means, settings: slice = slice(None)) -> float:
    """WCLL's smallest lead over the best of the others."""
    leads_by_setting = [
        own - max(values[i] for method, values in figures.items() if method != "wcll")
        for i, own in enumerate(figures["wcll"])
    ]
    return min(leads_by_setting[settings])


@claim_on_means("WCLL is the most accurate of the ten methods in every MNIST setting (tables 2, 3 and 4).")
def _best(found: Reproduction) -> tuple[Question, str]:
    judged = {}
    for (how, name), own in product(PROTOCOL_NAMES.items(), found.formulas):
        settings = list(zip(*(means(found.main(how, method)) for method in (own, *RIVALS)), strict=True))
        first = [row[0] == max(row) for row in settings]
        judged[f"by {name} with {show_name(own)}"] = sum(first), max(max(row) - row[0] for row in settings)
    at_rates = {lr: sum(first) for lr, first in found.first_at_rates.items()}
    forward = means(found.main("fair", "forward, Q from counts"))
    return lead_question(found, first_by), say("claims", "best", judged, len(found.columns), at_rates, forward)


@claim_on_means("The weights help: WCLL is more accurate than FREE, the same risk without them, in every setting.")
def _helps(found: Reproduction) -> tuple[Question, str]:
    figures = {
        (how, metric, method): means(found.main(how, method, metric))
        for how, metric, method in product(PROTOCOL_NAMES, ("accuracy", RARE), ("wcll", "free"))
    }
    question = lead_question(found, lambda f: min(a - b for a, b in zip(f["wcll"], f["free"], strict=True)))
    return question, say("claims", "helps", figures)


@claim_on_worlds("WCLL's standard deviation over trials is smaller than that of PC and L-W (results on figure 3).")
def _spread(world: World) -> tuple[Answer, str]:
    methods = ("wcll", "pc", "l-w")
    cells = {method: world.cells(method) for method in methods}
    if min(len(cell.values) for cell in cells["wcll"]) < 2:
        return None, "A single trial has no spread."
    spread, answer = pooled_spreads(cells, "wcll")
    rare = {m: [100 * cell.std for cell in world.recalls(m)] for m in methods}
    below = sum(own.std < min(pc.std, lw.std) for own, pc, lw in zip(*cells.values(), strict=True))
    printed = [{one.method: one.std or 0.0 for one in row} for row in printed_settings("mnist", (2, 3, 4))]
    theirs = sum(row["wcll"] < min(row["pc"], row["l-w"]) for row in printed)
    return answer, say("claims", "spread", spread, rare, below, len(world.columns), theirs, len(printed))


@claim_on_worlds("WCLL keeps its accuracy on the imbalanced class when p goes from 2 to 2.5 (figure 3).")
def _steady(world: World) -> tuple[Answer, str]:
    change = change_between(*world.step("wcll"))
    others = {m: change_between(*world.step(m)) for m in ("pc", "l-w", "nn") if any(means(world.step(m)[0]))}
    kept = True if change.low > -NOTICEABLE else False if change.high < -NOTICEABLE else None
    return kept, say("claims", "steady", change, others, NOTICEABLE)


@claim_on_worlds("WCLL is better than PC, L-W and NN on the imbalanced class in every panel of figure 3.")
def _imbalanced(world: World) -> tuple[Answer, str]:
    rivals = ("pc", "l-w", "nn")
    by_method = {method: world.recalls(method) for method in ("wcll", *rivals)}
    pairs = [(own, cell) for method in rivals for own, cell in zip(by_method["wcll"], by_method[method], strict=True)]
    return ahead_everywhere(pairs), say("claims", "imbalanced", by_method, leads(pairs), world.panels)


def _falls(method: str) -> Callable[[World], tuple[Answer, str]]:
    def judge(world: World) -> tuple[Answer, str]:
        before, after = world.step(method)
        if not any(means([*before, *after])):
            return None, say("claims", "never_predicted", method)
        change = change_between(before, after)
        return change.fell, say("claims", "falls", change, means(before), means(after))

    return judge


claim_on_worlds("PC gets worse on the imbalanced class when p goes from 2 to 2.5 (results on figure 3).")(_falls("pc"))
claim_on_worlds("NN gets worse on the imbalanced class when p goes from 2 to 2.5 (results on figure 3).")(_falls("nn"))
claim_on_worlds("L-W gets worse too (figure 3 shows L-W where the text says NN).")(_falls("l-w"))


@claim_on_worlds(
    "Existing methods fail on imbalanced classes: WCLL finds more of them than any rival in every setting."
)
def _rivals_fail(world: World) -> tuple[Answer, str]:
    own = world.cells("wcll", RARE)
    rivals = {method: world.cells(method, RARE) for method in RIVALS}
    pairs = [(a, b) for cells in rivals.values() for a, b in zip(own, cells, strict=True)]
    return ahead_everywhere(pairs), say("claims", "rivals_fail", own, rivals, leads(pairs))


@claim_on_worlds("WCLL's negative term overfits: accuracy falls after its peak (results on table 2, conclusion).")
def _overfits(world: World) -> tuple[Answer, str]:
    lost = {
        method: [
            change_between([peak], [last]) for peak, last in zip(world.peaks(method), world.cells(method), strict=True)
        ]
        for method in ("wcll", "log")
    }
    more = [own.high < 0 and own.high < other.low for own, other in zip(lost["wcll"], lost["log"], strict=True)]
    less = [other.high < own.low for own, other in zip(lost["wcll"], lost["log"], strict=True)]
    return True if all(more) else False if any(less) else None, say("claims", "overfits", lost, sum(more))


@claim_on_means("WCLL keeps a high accuracy in the extreme case (table 4).")
def _extreme(found: Reproduction) -> tuple[Question, str]:
    own, printed = means(found.main("paper", "wcll")), [one.printed.mean for one in found.main_beside("wcll")]
    table2, table4 = slice(0, 6), slice(9, 11)
    first = lead_question(found, lambda figures: first_by(figures, table4))
    kept = lead_question(found, lambda f: fmean(f["wcll"][table4]) - fmean(f["wcll"][table2]) + LARGE)

    def question(figures: Means) -> Answer:
        answers = first(figures), kept(figures)
        return False if False in answers else None if None in answers else True

    drops = [fmean(values[table2]) - fmean(values[table4]) for values in (own, printed)]
    return question, say("claims", "extreme", own[table4], printed[table4], drops, LARGE)


@claim("The experiments train the loss of Eq. 12 (experiments, first paragraph).")
def _eq12(found: Reproduction) -> Judged:
    fits = found.fits
    if fits is None:
        return UNTOLD, say("claims", "no_search")
    by_formula = {
        loss: [fit for fit in fits.search.whole if fit.protocol.loss == loss] for loss in fits.search.readings
    }
    within = {loss: sum(fit.protocol in fits.by_wcll for fit in some) for loss, some in by_formula.items()}
    eq12 = [loss for loss in within if "eq12" in loss]
    own, others = sum(within[loss] for loss in eq12), sum(within[loss] for loss in within if loss not in eq12)
    verdict = FAILS if not own else UNTOLD if others else HOLDS
    nearest = min((fit for loss in eq12 for fit in by_formula[loss]), key=lambda fit: fit.distance)
    tables = means(found.main("paper", "wcll, Eq. 12"))
    return verdict, say("claims", "eq12", nearest, within, tables)


@claim("WCLL can be used with any loss and any model.")
def _assumption_free(found: Reproduction) -> Judged:
    bases = found.parts["bases"]
    places = list(product(bases.methods, bases.columns))
    by_protocol = {how: {place: 100 * bases.cell(how, *place).mean for place in places} for how in PROTOCOL_NAMES}
    answers = []
    for figures in by_protocol.values():
        own = figures["cross-entropy", "linear"]
        answers.append(min(figures.values()) >= own - LARGE)
    return verdict_of(answers), say("claims", "assumption_free", by_protocol, LARGE)


@claim_on_worlds("NCLL and ML_CLL do poorly on MNIST (and are left out of its tables).")
def _poor(world: World) -> tuple[Answer, str]:
    wcll = means(world.cells("wcll"))
    figures = {form: means(world.cells(form)) for forms in FORMS.values() for form in forms if form in world.methods}
    below = [max(values) < own for *values, own in zip(*figures.values(), wcll, strict=True)]
    missing = [form for forms in FORMS.values() for form in forms if form not in figures]
    answer = False if not all(below) else None if missing else True
    return answer, say("claims", "poor", figures, wcll, sum(below), missing)


@claim_on_means("LOG does poorly on MNIST: it is never ahead of WCLL (left out of tables 2 and 3, 9.80 in table 4).")
def _log(found: Reproduction) -> tuple[Question, str]:
    question = lead_question(found, lambda f: min(a - b for a, b in zip(f["wcll"], f["log"], strict=True)))
    figures, wcll = (means(found.main("paper", method)) for method in ("log", "wcll"))
    ahead = sum(a > b for a, b in zip(figures, wcll, strict=True))
    return question, say("claims", "log", figures, ahead, found.parts["table4"].cells("paper", "log"))


@claim("Weights that do not match pi cost accuracy (table 5).")
def _weights(found: Reproduction) -> Judged:
    answers = {
        f"{show_name(formula)} by {world.title}": _wrong_weights_cost(world, formula)
        for world, formula in product(found.worlds, FORMULAS)
        if world.wrong_weights(formula)
    }
    tail = say("claims", "over_worlds", answers, len(found.worlds), N_PROTOCOLS, ENOUGH)
    evidence = f"{say('claims', 'weights', found.worlds[0])} {tail}"
    return verdict_over_worlds(answers, len(found.worlds)), evidence


def _wrong_weights_cost(world: World, formula: str) -> Answer:
    """Whether all wrong weights are significantly below the right ones; not if all are within what is noticeable."""
    part, column = world.weights, world.weights.columns[0]
    pairs = [
        (part.cell(how, formula, column), part.cell(how, method, column))
        for how, method in product(part.tables, world.wrong_weights(formula))
    ]
    if all(100 * (right.mean - wrong.mean) < NOTICEABLE for right, wrong in pairs):
        return False
    return ahead_everywhere(pairs)


def _resampling(kinds: tuple[str, str]) -> Callable[[World], tuple[Answer, str]]:
    def judge(world: World) -> tuple[Answer, str]:
        part = world.sampling
        if any(kind not in part.methods for kind in kinds):
            return None, say("claims", "not_run", kinds)
        pairs = [
            pair
            for kind, how in product(kinds, part.tables)
            for pair in zip(part.cells(how, "wcll"), part.cells(how, kind), strict=True)
        ]
        return ahead_everywhere(pairs), say("claims", "resampling", part, kinds, leads(pairs))

    return judge


claim_on_worlds("Weights beat over- and under-sampling by the complementary label by a significant margin (table 6).")(
    _resampling(("under-sampling", "over-sampling"))
)
claim_on_worlds(
    "Weights beat over- and under-sampling by the TRUE label, which nobody could do but which is nearer to print."
)(_resampling(("under-sampling by y", "over-sampling by y")))


@claim("The estimation error falls as 1/sqrt(N), or faster (theorem 1).")
def _rate(found: Reproduction) -> Judged:
    if found.bounds is None:
        return UNTOLD, say("claims", "no_bounds")
    slopes, sizes = found.bounds.slopes, found.parts["sizes"]
    slow = any(slope.low > -0.5 for slope in slopes)
    verdict = FAILS if slow else HOLDS if all(slope.as_root or slope.faster for slope in slopes) else UNTOLD
    return verdict, say("claims", "rate", slopes, sizes, max(means(sizes.cells("paper", "ordinary labels"))))


@claim("The largest deviation of the risk is at most what Lemma 1 says.")
def _lemma(found: Reproduction) -> Judged:
    if found.bounds is None:
        return UNTOLD, say("claims", "no_bounds")
    case = found.bounds.counterexample
    return FAILS if case.violated else UNTOLD, say("claims", "lemma", case, found.bounds.slopes)


for _statement, _judge in {**ON_IMAGES, **ON_DDSM}.items():
    claim(_statement)(_judge)
