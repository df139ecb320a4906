"""Every verdict's rule on made-up results: where a claim holds by construction, where it does not, and in between."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from made_up import Figures, everything, noisy, printed
from wcll.paper.bound_study import Slope
from wcll.paper.claims import ON_DDSM, ON_IMAGES
from wcll.paper.protocols import MARGIN, fitting, noise_of_leads
from wcll.paper.reproduction import CLAIMS, DEPENDS, FAILS, HOLDS, UNTOLD, verdict_of, verdict_over_worlds


def judged(found, words):
    (judge,) = [judge for statement, judge in CLAIMS.items() if words in statement]
    return judge(found)


def verdict(found, words):
    verdict, evidence = judged(found, words)
    assert "nan" not in evidence
    return verdict


# --- how answers become a verdict ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "then"),
    [
        ([True], HOLDS),
        ([False, False], FAILS),
        ([True, False], DEPENDS),
        ([True, False, None], DEPENDS),
        ([None], UNTOLD),
        ([], UNTOLD),
        ([True] * 9 + [None], HOLDS),
        ([True] * 8 + [None], UNTOLD),
        ([False] * 18 + [None] * 2, FAILS),
    ],
)
def test_answers_become_a_verdict(answers, then):
    assert verdict_of(answers) == then


def test_too_few_worlds_may_contradict_but_not_agree():
    assert verdict_over_worlds({"a": True, "b": True}, 2) == UNTOLD
    assert verdict_over_worlds({"a": True, "b": True, "c": True}, 3) == HOLDS
    assert verdict_over_worlds({"a": True, "b": False}, 2) == DEPENDS


# --- claims on means, over the protocols that fit --------------------------------------------------------------------


def rivals_at(apart):
    """WCLL as printed under every protocol, so that all fit; rivals so many points from it."""
    return lambda one, column: printed(column) + (0 if one.loss.startswith("wcll") else apart(one, column))


@pytest.fixture(
    scope="module",
    params=[
        (lambda one, column: -20, HOLDS),
        (lambda one, column: 20, FAILS),
        (lambda one, column: 20 if one.lr == 5e-4 else -20, DEPENDS),
        (lambda one, column: 20 if column == "p = 2, class 1" else -20, FAILS),  # one setting is enough
        (lambda one, column: 0.1, UNTOLD),  # within noise
    ],
    ids=["below", "above", "by rate", "in one setting", "within noise"],
)
def searched(request):
    """Results of a search, and what follows from them."""
    apart, then = request.param
    return everything(by_protocol=rivals_at(apart), worlds=1), then


@pytest.mark.parametrize("words", ["most accurate of the ten", "The weights help", "LOG does poorly"])
def test_claims_on_means(words, searched):
    found, then = searched
    assert verdict(found, words) == then


def test_the_noise_is_the_border():
    """Two standard errors of a difference over the search's three trials: just inside it is open, just outside not."""
    found = everything(by_protocol=rivals_at(lambda one, column: -20), worlds=1)
    border = MARGIN * noise_of_leads(found, 3)
    for apart, then in ((-1.01 * border, HOLDS), (-0.99 * border, UNTOLD), (1.01 * border, FAILS)):
        again = everything(by_protocol=rivals_at(lambda one, column, apart=apart: apart), worlds=1)
        assert verdict(again, "most accurate of the ten") == then


def test_only_protocols_that_fit_are_asked():
    """WCLL far from print at all rates but one: what holds elsewhere counts for nothing."""

    def say(one, column):
        if one.loss.startswith("wcll"):
            return printed(column) + (0 if one.lr == 5e-5 else 30)
        return printed(column) + (-10 if one.lr == 5e-5 else 60)

    found = everything(by_protocol=say, worlds=1)
    fits = fitting(found)
    assert {one.lr for one in fits.by_wcll} == {5e-5}
    assert len(fits.by_wcll) == 720 / 4
    assert verdict(found, "most accurate of the ten") == HOLDS


def test_what_decides_is_named():
    found = everything(by_protocol=rivals_at(lambda one, column: 20 if one.size == 1000 else -20), worlds=1)
    assert "What decides is the number of images: 1000: 0 of " in judged(found, "most accurate")[1]


def test_without_a_search_nothing_is_told_of_means():
    assert verdict(everything(worlds=1), "most accurate of the ten") == UNTOLD


@pytest.mark.parametrize(
    ("eq12", "others", "then"),
    [(0, 30, HOLDS), (30, 0, FAILS), (0, 0, UNTOLD)],
    ids=["it alone fits", "it does not fit", "all fit"],
)
def test_eq12(eq12, others, then):
    say = lambda one, column: printed(column) + (eq12 if "eq12" in one.loss else others)  # noqa: E731
    assert verdict(everything(by_protocol=say, worlds=1), "Eq. 12") == then


@pytest.mark.parametrize(
    ("table2", "table4", "rival", "then"),
    [(70, 65, 40, HOLDS), (70, 50, 40, FAILS), (70, 65, 80, FAILS), (70, 60, 40, UNTOLD)],
    ids=["high and first", "a large fall", "not first", "at the margin"],
)
def test_extreme(table2, table4, rival, then):
    def say(one, column):
        return (table4 if column.startswith("p = 5, classes") else table2) if one.loss.startswith("wcll") else rival

    assert verdict(everything(by_protocol=say, worlds=1), "extreme case") == then


# --- claims on recalls, spreads and epochs, over worlds --------------------------------------------------------------


def by_method(default=None, **figures):
    """The same figures in every setting, with a little noise; names of methods with _ for -."""
    named = {name.replace("_", "-"): one for name, one in figures.items()}
    return noisy(lambda method, column: named.get(method, default or Figures()))


def by_p(method, before, after):
    """Recall of one method that changes from p = 2 to 2.5."""
    recall = lambda column: after if "2.5" in column else before  # noqa: E731
    return noisy(lambda one, column: Figures(recall=recall(column) if one == method else 50))


WRONG = ("random", "bias")


def wrong_weights(right, wrong):
    return noisy(lambda m, column: Figures(wrong if any(w in m for w in WRONG) else right if "wcll" in m else 50))


HOLDING = {
    "standard deviation": lambda m, c, s: noisy(lambda *_: Figures(), 0.2 if m == "wcll" else 3.0)(m, c, s),
    "keeps its accuracy": by_p("wcll", 60, 60),
    "better than PC, L-W and NN": by_method(wcll=Figures(recall=70)),
    "PC gets worse": by_p("pc", 60, 40),
    "NN gets worse": by_p("nn", 60, 40),
    "L-W gets worse": by_p("l-w", 60, 40),
    "Existing methods fail": by_method(wcll=Figures(recall=90), default=Figures(recall=10)),
    "overfits": by_method(wcll=Figures(50, peak=60), log=Figures(50, peak=50.1)),
    "NCLL and ML_CLL": by_method(wcll=Figures(80)),
    "Weights that do not match": wrong_weights(70, 50),
    "by the complementary label": by_method(wcll=Figures(80)),
    "by the TRUE label": by_method(wcll=Figures(80)),
}
FAILING = {
    "standard deviation": lambda m, c, s: noisy(lambda *_: Figures(), 3.0 if m == "wcll" else 0.2)(m, c, s),
    "keeps its accuracy": by_p("wcll", 60, 40),
    "better than PC, L-W and NN": by_method(pc=Figures(recall=70)),
    "PC gets worse": by_p("pc", 40, 60),
    "NN gets worse": by_p("nn", 40, 60),
    "L-W gets worse": by_p("l-w", 40, 60),
    "Existing methods fail": by_method(wcll=Figures(recall=40), exp=Figures(recall=60)),
    "overfits": by_method(wcll=Figures(50, peak=50.1), log=Figures(50, peak=60)),
    "NCLL and ML_CLL": by_method(wcll=Figures(60), default=Figures(70)),
    "Weights that do not match": wrong_weights(70, 70),
    "by the complementary label": by_method(wcll=Figures(40)),
    "by the TRUE label": by_method(wcll=Figures(40)),
}


@pytest.fixture(scope="module", params=HOLDING)
def words(request):
    """A claim; its tests follow each other, as they share results."""
    return request.param


def test_what_holds_by_construction(words):
    assert verdict(everything(HOLDING[words]), words) == HOLDS


def test_what_does_not_by_construction(words):
    assert verdict(everything(FAILING[words]), words) == FAILS


def test_what_other_protocols_deny_depends(words):
    assert verdict(everything(HOLDING[words], elsewhere=FAILING[words]), words) == DEPENDS


def test_one_protocol_alone_tells_nothing(words):
    assert verdict(everything(HOLDING[words], worlds=1), words) == UNTOLD


@pytest.mark.parametrize(("fall", "then"), [(1.0, HOLDS), (3.5, FAILS)])
def test_what_is_kept_is_kept_within_two_points(fall, then):
    assert verdict(everything(by_p("wcll", 60, 60 - fall)), "keeps its accuracy") == then


def test_a_class_that_is_never_predicted_cannot_be_lost():
    say = lambda m, c, s: Figures(recall=0)  # noqa: E731
    assert verdict(everything(say), "NN gets worse") == UNTOLD


def test_another_form_of_a_poor_method_counts():
    forms = by_method(wcll=Figures(60), **{"ncll, no ascent": Figures(79)}, default=Figures(20))
    assert verdict(everything(forms), "NCLL and ML_CLL") == FAILS
    missing = everything(by_method(wcll=Figures(60), default=Figures(20)), without=("ml-cll, GDF",))
    assert verdict(missing, "NCLL and ML_CLL") == UNTOLD


def test_formulas_may_disagree_on_weights():
    """What table 5 says of Eq. 9 and not of Algorithm 1 depends on the formula."""

    def say(method, column):
        wrong = any(word in method for word in WRONG) and "Algorithm 1" not in method
        return Figures(50 if wrong else 70)

    assert verdict(everything(noisy(say), worlds=1), "Weights that do not match") == DEPENDS


@pytest.mark.parametrize(
    ("figures", "then"), [((70, 65), HOLDS), ((70, 55), FAILS)], ids=["within ten points", "more than ten below"]
)
def test_any_loss_and_any_model(figures, then):
    own, worst = figures
    say = noisy(lambda method, column: Figures(worst if method == "mse" else own), 0.1)
    assert verdict(everything(say, worlds=1), "any loss and any model") == then


def with_bounds(low, high, violated):
    """Measured slopes with this interval, and a counterexample."""
    slope = Slope("excess", "uniform", "excess risk", (low + high) / 2, low, high, 100, 100, 100)
    case = SimpleNamespace(
        classes=400,
        n=10_000,
        norm=3.0,
        mean=0.5,
        printed=0.4,
        corrected=24.0,
        violated=violated,
        held=20,
        seeds=range(20),
    )
    return replace(
        everything(by_method(default=Figures(90), wcll=Figures(70)), worlds=1),
        bounds=SimpleNamespace(slopes=[slope], counterexample=case),
    )


@pytest.mark.parametrize(
    ("low", "high", "then"), [(-0.51, -0.49, HOLDS), (-0.9, -0.8, HOLDS), (-0.4, -0.3, FAILS), (-0.4999, -0.3, FAILS)]
)
def test_the_rate(low, high, then):
    assert verdict(with_bounds(low, high, 0), "1/sqrt(N)") == then
    assert verdict(everything(worlds=1), "1/sqrt(N)") == UNTOLD


def test_the_lemma():
    assert verdict(with_bounds(-0.5, -0.5, 20), "Lemma 1") == FAILS
    assert verdict(with_bounds(-0.5, -0.5, 0), "Lemma 1") == UNTOLD


def test_every_claim_is_tried_both_ways():
    assert HOLDING.keys() == FAILING.keys()
    tried = {*HOLDING, "most accurate of the ten", "The weights help", "LOG does poorly", "Eq. 12", "extreme case"}
    tried |= {"any loss and any model", "1/sqrt(N)", "Lemma 1"}
    tried |= {*ON_IMAGES, *ON_DDSM}  # see test_image_claims.py and test_ddsm_claims.py
    for statement in CLAIMS:
        assert any(words in statement for words in tried), statement
