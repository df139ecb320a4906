"""Tables are pure functions of rows: what is best, what is missing, what a test can tell, in every format."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from browser import look_at, needs_browser
from small import FORWARD, LIMIT, LINEAR_MODEL, PC, SMALL, TABLE, WCLL, finished, suite_toml
from wcll.cli.console import Screen
from wcll.cli.experiments import print_table
from wcll.evaluation.selection import select
from wcll.exceptions import InputError
from wcll.experiments import Row, parse_suite
from wcll.report.result_tables import (
    Cell,
    Line,
    Table,
    build_table,
    choose,
    compared,
    finding,
    holm,
    latex_text,
    paired_p_value,
    to_csv,
    to_dict,
    to_latex,
    to_markdown,
    told_notes,
)
from wcll.report.suite_report import suite_page

SUITE = parse_suite(SMALL, "small")
LAST = suite_toml(tables=[{**TABLE, "select": "last", "at": {"lr": 1e-3}}])
SEEDS = range(3)


def made(trial, quality, rng):
    """A row of a run that gets better over its 12 epochs, with as much noise as a real one."""
    sizes, epochs = np.full(10, 40), trial.epochs
    rise = np.linspace(0.3, 1.0, epochs)[:, None]
    correct = rng.binomial(40, np.clip(quality * rise, 0, 1), size=(epochs, 10))
    tables = np.array([np.diag(c) + np.roll(np.diag(40 - c), 1, axis=1) for c in correct])
    history = {
        "sizes": [30] + [60] * 9, "test_sizes": sizes.tolist(), "checkpoints": list(range(1, epochs + 1)),
        "correct": correct.tolist(), "confusion": tables.tolist(), "train_loss": [1.0] * epochs,
        "log_likelihood": (-2 + 0.1 * quality * rise[:, 0]).tolist() if trial.loss != "pc" else None,
        "log_likelihood_se": [0.01] * epochs, "held_out": (tables[:, ::-1] + 1).tolist(), "train_labels": [1] * 10,
        "judge": {"transition": ((1 - np.eye(10)) / 9).tolist(), "transition_source": "assumed",
                  "prior": [0.1] * 10, "prior_source": "estimated", "totals": None},
    }  # fmt: skip
    provenance = {"seconds": 1.0, "device": "x86_64", "commit": "abc", "wcll": "0", "torch": "0", "numpy": "0",
                  "python": "3", "data": {"fingerprint": "f", "official": False}}  # fmt: skip
    row = Row(trial.key, trial.config(), {}, history, provenance)
    return Row(row.key, row.config, {"accuracy": row.value("accuracy", epochs)}, history, provenance)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    quality = {"wcll": 0.7, "pc": 0.4, "forward": 0.72, "cross-entropy": 0.95}
    return {t.key: made(t, quality[t.loss] * (1 if t.lr > 5e-3 else 0.8), rng) for t in SUITE.all_trials()}


@pytest.fixture(scope="module")
def table(rows):
    return build_table(SUITE, SUITE.tables[0], rows, SEEDS)


def by_hand(trial):
    """A row with round numbers: the slower rate is more accurate on test samples, and held-out labels favour the other."""
    correct = 9 if trial.lr == 1e-3 else 8 if trial.loss == "forward" else 5 + trial.seed  # of ten samples per class
    row = finished(trial, correct)
    row.history["log_likelihood"] = [-2.2 if trial.lr == 1e-3 else -2.0] * trial.epochs
    return row


@pytest.mark.parametrize(
    ("select", "values", "text", "forward"),
    [
        ("label-free", [0.5, 0.6, 0.7], "60.0 ± 10.0°", "80.0 ± 0.0"),
        ("oracle", [0.9, 0.9, 0.9], "90.0 ± 0.0", "90.0 ± 0.0°"),
    ],
)
def test_numbers_worked_out_by_hand(select, values, text, forward):
    """Mistakes go to the next class, so that macro-F1 is the accuracy; forward at the other rate has 80 %.

    The paired t statistic is 0.2 / (0.1 / sqrt(3)) = 3.46 with two degrees of freedom: p = 0.074.
    """
    tables = [{**TABLE, "select": select}]
    suite = parse_suite(suite_toml(columns=[LINEAR_MODEL], rows=[WCLL, FORWARD], tables=tables), "small")
    table = build_table(suite, suite.tables[0], {one.key: by_hand(one) for one in suite.all_trials()}, SEEDS)
    for metric in ("accuracy", "macro_f1"):
        cell = table.cell("wcll", "linear", metric)
        assert [*cell.values.values()] == pytest.approx(values)
        assert cell.text() == text
    assert table.cell("forward", "linear", "accuracy").text() == forward


def test_the_limit_never_wins_and_one_rival_does(table):
    for i in range(4):
        best = [line.title for line in table.lines if line.cells[i].best]
        assert len(best) == 1
        assert best[0] != "limit"
    assert [line.limit for line in table.lines] == [False, False, False, True]
    assert [line.mark for line in table.lines] == ["", "†", "", "‡"]


def test_paired_tests_with_holm():
    first, second = {0: 0.5, 1: 0.6, 2: 0.7, 3: 0.8}, {1: 0.55, 2: 0.66, 3: 0.79, 4: 0.1}
    expected = stats.ttest_rel([0.6, 0.7, 0.8], [0.55, 0.66, 0.79]).pvalue
    assert paired_p_value(first, second) == pytest.approx(expected)
    assert paired_p_value(first, first) == 1.0
    assert paired_p_value({0: 0.5, 1: 0.75}, {0: 0.25, 1: 0.5}) == 0.0  # the same difference each time
    assert paired_p_value({0: 1.0}, {0: 0.5}) is None
    assert holm([]) == []
    assert holm([0.5, 0.01, 0.6]) == pytest.approx([1.0, 0.03, 1.0])


def test_missing_trials_are_said(rows):
    some = dict(rows)
    gone = [trial.key for trial in SUITE.candidates(SUITE.columns[0], SUITE.rows[0], 1)][:1]
    gone += [trial.key for seed in SEEDS for trial in SUITE.candidates(SUITE.columns[0], SUITE.rows[1], seed)]
    for key in gone:
        del some[key]
    table = build_table(SUITE, SUITE.tables[0], some, SEEDS)
    assert table.lines[0].cells[0].missing == (1,)
    assert "(2 of 3)" in table.lines[0].cells[0].text()
    assert table.lines[1].cells[0].text() == "- (0 of 3)"
    assert not table.complete
    assert "(2 of 3)" in to_markdown(table)
    assert "(2 of 3)" in suite_page(SUITE, some, SEEDS, "wcll run small")


def test_an_oracle_is_marked_wherever_it_appears(rows):
    suite = parse_suite(suite_toml(tables=[{**TABLE, "select": "oracle"}]), "small")
    table = build_table(suite, suite.tables[0], rows, SEEDS)
    honest = build_table(SUITE, SUITE.tables[0], rows, SEEDS)
    assert all(a.cells[0].mean >= b.cells[0].mean for a, b in zip(table.lines, honest.lines, strict=True))
    for shown in (to_markdown(table), to_latex(table), to_dict(table)["caption"], suite_page(suite, rows, SEEDS, "x")):
        assert "ORACLE" in shown
        assert "TEST labels" in shown
    assert ",oracle," in to_csv([table])


def test_last_needs_a_single_candidate(rows):
    suite = parse_suite(LAST, "small")
    table = build_table(suite, suite.tables[0], rows, SEEDS)
    trial = suite.candidates(suite.columns[0], suite.rows[0], 0, {"lr": 1e-3})[0]
    assert table.lines[0].cells[0].values[0] == rows[trial.key].value("accuracy", 12)
    assert "lr = 0.001" in to_markdown(table)


def test_selection_needs_held_out_labels(rows):
    row = next(iter(rows.values()))
    bare = Row(row.key, row.config, row.metrics, {**row.history, "held_out": None}, row.provenance)
    with pytest.raises(InputError, match="select: expected 'last' for runs without validation labels"):
        choose([bare, bare], "label-free", "accuracy")


@dataclass(frozen=True)
class Scored:
    """A run of which only the held-out scores matter."""

    scores: list[float]
    checkpoints = (1, 3, 8, 12)

    def held_out_scores(self):
        return np.array(self.scores)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from([0.0, 1.0, 2.0, np.nan, np.inf]), min_size=4, max_size=4), min_size=1, max_size=4)
)
def test_runs_are_chosen_one_by_one_as_they_are_together(scores):
    """The lowest score, then the earlier checkpoint, then the earlier candidate: as ``select`` has it over all."""
    runs = [Scored(one) for one in scores]
    picked, together = choose(runs, "label-free", "accuracy"), select(scores)
    assert picked.run is runs[together.candidate]
    assert picked.epoch == Scored.checkpoints[together.checkpoint]


def test_settings_are_parsed_once(rows, monkeypatch):
    suite = parse_suite(SMALL, "small")
    again = [suite.candidates(column, row, 2) for column in suite.columns for row in suite.rows]
    assert {trial.key for cell in again for trial in cell} <= set(rows)
    monkeypatch.setattr("wcll.experiments.suite.Trial.of", None)
    assert build_table(suite, suite.tables[0], rows, SEEDS).complete


def test_cells_are_found_by_their_place(table):
    for line in table.lines:
        for (column, metric), cell in zip(table.heads, line.cells, strict=True):
            assert table.cell(line.title, column, metric) is cell


def test_notes_say_what_a_reader_must_know(rows, table):
    text = to_markdown(table)
    assert "without true labels" in text
    assert "Q estimated from label counts, told the family: inverse-size" in text
    assert "digits: not the official file" in text
    assert "† no class probabilities" in text
    other = dict(rows)
    key, row = next(iter(rows.items()))
    data = {"data": {"fingerprint": "g", "official": False}}
    other[key] = Row(key, row.config, row.metrics, row.history, {**row.provenance, **data})
    suite = parse_suite(LAST, "small")
    assert "DIFFERENT data" in to_markdown(build_table(suite, suite.tables[0], other, SEEDS))


def test_latex_compiles_in_principle(table):
    text = to_latex(table)
    assert text.count(r"\\") == 1 + len(table.lines)
    assert r"\toprule" in text
    assert r"\textbf{" in text
    assert not re.search(r"(?<!\\)[%_&](?!\s)", text.replace(" & ", " ")), text
    assert latex_text("50 % of a_b & {c}") == r"50 \% of a\_b \& \{c\}"


def test_csv_has_every_figure(table):
    lines = list(csv.DictReader(io.StringIO(to_csv([table]))))
    assert len(lines) == len(table.lines) * len(table.heads)
    assert float(lines[0]["mean"]) == table.lines[0].cells[0].mean
    assert {line["metric"] for line in lines} == {"accuracy", "macro_f1"}
    assert sum(line["best"] == "yes" for line in lines) == len(table.heads)


def test_accuracy_on_one_class_is_a_metric_like_others(rows):
    """Each class has as many test samples as any: their recalls average to accuracy. What no class is shows nothing."""
    metrics = ["accuracy", *(f"recall_{k}" for k in range(11))]
    suite = parse_suite(suite_toml(tables=[{**TABLE, "metrics": metrics}]), "small")
    table = build_table(suite, suite.tables[0], rows, SEEDS)
    heads = table.head_texts()
    assert heads[1] == "linear, recall of class 0"
    for line in table.lines:
        whole, *recalls, absent = line.cells[: len(suite.tables[0].metrics)]
        assert np.mean([cell.mean for cell in recalls]) == pytest.approx(whole.mean)
        assert absent.text() == "-"
    assert "recall_3" in to_csv([table])


def test_a_table_with_one_trial_has_no_spread_and_no_test(rows):
    table = build_table(SUITE, SUITE.tables[0], rows, range(1))
    assert "±" not in to_markdown(table)
    assert "°" not in to_markdown(table)
    assert "one trial" in to_markdown(table)
    assert Cell({0: 0.5}, ()).std != Cell({0: 0.5}, ()).std  # NaN


def test_page_is_self_contained(rows):
    page = suite_page(SUITE, rows, SEEDS, "wcll run small")
    assert not re.search(r"(src|href)=[\"'](?!#)", page)
    assert "url(" not in page
    assert page.count("<svg") == 2 * (3 * len(SUITE.rows) + 1)
    assert "fit no class shares under uniform labels" in page  # these made-up labels have no Q


NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def named(rows):
    """The same rows, of data whose classes have names."""
    data = {"fingerprint": "f", "official": False, "classes": NAMES}
    return {
        key: Row(key, row.config, row.metrics, row.history, {**row.provenance, "data": data})
        for key, row in rows.items()
    }


def test_the_page_names_classes_what_was_chosen_and_what_is_rare(rows):
    page = suite_page(SUITE, named(rows), SEEDS, "wcll run small")
    assert page.count("<td>rare</td>") == 1  # both columns have the same sizes, and one table
    assert "fewer training samples than the mean, 57." in page
    assert re.search(r'<th scope="row">airplane</th><td>30</td><td>1</td><td>40</td><td>rare</td>', page)
    assert "recall of each class, airplane" in page
    assert re.search(r"0\.01; epochs? \d+", page)
    assert '<p class="found">No one method is ahead: the highest accuracy has wcll for linear' in page
    assert "airplane" not in suite_page(SUITE, rows, SEEDS, "wcll run small")  # runs of before names were kept


@needs_browser
def test_a_page_of_many_columns_is_not_cut_off(rows, tmp_path):
    columns = [{"title": f"a column, number {i}", "batch_size": i + 1} for i in range(9)]
    suite = parse_suite(suite_toml(columns=columns), "wide")
    rng = np.random.default_rng(0)
    page = tmp_path / "page.html"
    page.write_text(suite_page(suite, named({t.key: made(t, 0.5, rng) for t in suite.all_trials([0])}), [0], "x"))
    seen = look_at(page, 1300, False, tmp_path)
    assert seen["overflow"] <= 0
    assert seen["cells"] <= 1300


@pytest.mark.parametrize("most", [1, 3, 4, 18])
def test_wide_tables_are_split_by_metric(table, most):
    parts = table.split(most)
    assert all(len(part.heads) <= most for part in parts)
    assert len(parts) == (1 if len(table.heads) <= most else 2 * -(-2 // most))
    assert sorted(head for part in parts for head in part.heads) == sorted(table.heads)
    for part in parts:
        assert len(parts) == 1 or len({metric for _, metric in part.heads}) == 1
        for line in part.lines:
            assert line.cells == tuple(table.cell(line.title, *head) for head in part.heads)
    assert len({part.title for part in parts}) == len(parts)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_figure_is_wrapped_on_a_terminal(table, width, monkeypatch, capsys):
    monkeypatch.setattr("wcll.cli.experiments.console", lambda: Screen(width=width, highlight=False, markup=False))
    print_table(table)
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= width
    assert all(cell.text() in shown for line in table.lines for cell in line.cells)


def test_the_finding_without_a_default():
    rng, quality = np.random.default_rng(0), {"wcll": 0.5, "pc": 0.4, "forward": 0.7, "cross-entropy": 0.95}
    rows = {trial.key: made(trial, quality[trial.loss], rng) for trial in SUITE.all_trials()}
    said = finding(SUITE, build_table(SUITE, SUITE.tables[0], rows, SEEDS))
    assert said.startswith("forward has the highest accuracy of 3 methods")
    assert "in 2 of 2 columns" in said
    assert said.endswith("points more.")
    assert finding(SUITE, build_table(SUITE, SUITE.tables[0], {}, SEEDS)) == ""


def test_the_finding_where_no_one_is_ahead():
    """Two columns, won by two methods: both are named."""
    figures = {"a": (0.7, 0.4), "b": (0.6, 0.5)}
    cells = {name: tuple(Cell({0: value}, ()) for value in values) for name, values in figures.items()}
    marked = zip(*(compared([cells[name][i] for name in figures]) for i in (0, 1)), strict=True)
    lines = [Line(name, "", tuple(own)) for name, own in zip(figures, marked, strict=True)]
    heads = (("p = 2", "accuracy"), ("p = 5", "accuracy"))
    said = finding(SUITE, Table("t", "last", heads, tuple(lines), 1, ()))
    assert said == "No one method is ahead: the highest accuracy has a for p = 2 (70.0 %), b for p = 5 (50.0 %)."


def with_held_out(rows, table):
    """The same rows with other held-out labels."""
    histories = {key: {**row.history, "held_out": [table] * row.config["epochs"]} for key, row in rows.items()}
    return {key: Row(key, row.config, row.metrics, histories[key], row.provenance) for key, row in rows.items()}


def test_the_page_says_where_labels_contradict_q(rows):
    fine = (4 * (1 - np.eye(10))).astype(int)
    page = suite_page(SUITE, with_held_out(rows, fine.tolist()), SEEDS, "wcll run small")
    assert "too few labels" in page or "can&#39;t be checked (" in page
    assert "held-out labels do not contradict this Q, but would not contradict others either (24)" in page
    assert "ok (" not in page
    often = fine.copy()
    often[3] *= 6
    page = suite_page(SUITE, with_held_out(rows, often.tolist()), SEEDS, "wcll run small")
    assert "the assumed Q does not fit (3)" in page
    assert "class 3 is 40 % of the labels; uniform labels allow at most 11 %" in page
    assert "held-out labels contradict this Q (24)" in page
    assert "ok (" not in page


def test_only_the_fullest_cells_compete():
    cells = [Cell({0: 0.90}, (1, 2)), Cell({0: 0.95, 1: 0.6, 2: 0.6}, ()), Cell({0: 0.5, 1: 0.5, 2: 0.5}, ())]
    assert [cell.best for cell in compared(cells)] == [False, True, False]


def test_runs_that_see_true_labels_do_not_compete(rows):
    resampled = {"title": "oracle resampling", "loss": "wcll", "resample": "over-by-y"}
    suite = parse_suite(suite_toml(rows=[WCLL, resampled, FORWARD, LIMIT]), "small")
    rng = np.random.default_rng(0)
    more = {t.key: made(t, 0.99, rng) for t in suite.all_trials() if t.resample}
    table = build_table(suite, suite.tables[0], {**rows, **more}, SEEDS)
    assert not any(cell.best for cell in table.lines[1].cells)
    assert table.lines[1].mark == "‡"
    assert "‡ sees true labels" in to_markdown(table)


def test_runs_that_diverged_are_marked(rows):
    key, row = next(iter(rows.items()))
    history = {**row.history, "train_loss": [None] * 12}
    other = {**rows, key: Row(key, row.config, row.metrics, history, row.provenance)}
    suite = parse_suite(LAST, "small")
    shown = to_markdown(build_table(suite, suite.tables[0], other, SEEDS))
    assert "§" in shown
    assert "diverged" in shown


def test_what_is_told_is_said(rows):
    rows = [{**WCLL, "pi": "declared"}, PC, {**FORWARD, "assume": "true"}, LIMIT]
    suite = parse_suite(suite_toml(rows=rows), "small")
    shown = to_markdown(build_table(suite, suite.tables[0], {}, SEEDS))
    assert "Told the true Q: forward" in shown
    assert "Told the class sizes: wcll" in shown
    assert told_notes(suite, choice=True)[1] == "told the selector's family: the choice of rates and epochs"
    assert "Q estimated from label counts, told the family: inverse-size" in shown
    suite = parse_suite(SMALL, "small")
    shown = to_markdown(build_table(suite, suite.tables[0], {}, SEEDS))
    assert "Told the selector's family: forward." in shown
    uniform = {"labels": "uniform", "judge": "uniform", "rows": [WCLL, PC, {**FORWARD, "assume": "uniform"}, LIMIT]}
    suite = parse_suite(suite_toml(**uniform), "small")
    shown = to_markdown(build_table(suite, suite.tables[0], {}, SEEDS))
    assert "Q assumed: uniform labels" in shown
    assert "old the" not in shown


def test_a_metric_without_meaning_is_not_missing():
    assert Cell({0: float("nan")}, (), undefined=True).text() == "-"
