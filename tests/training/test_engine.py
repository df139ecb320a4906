"""The engine: the same numbers as a plain loop, whatever trains together."""

from __future__ import annotations

import dataclasses
import gc
import os
import subprocess
import sys
import threading
import weakref
from contextlib import suppress

import numpy as np
import pytest
import torch

from cases import CASES, Case, context, labels
from small import PATIENCE, SMALL, run_suite
from wcll.cli.app import run as cli
from wcll.experiments import load_suite, parse_suite
from wcll.losses import LOSSES, Context, LossSpec, Targets
from wcll.models.registry import predict_logits
from wcll.report.result_tables import build_table, to_csv
from wcll.training import RunGroup, RunLoss, Training, make_engine, torch_threads, train
from wcll.training.augmentation import Standard
from wcll.training.autograd import PlainLoop
from wcll.training.cuda_graph import WARM_UP, CapturedRuns, Replay
from wcll.training.linear import LinearRuns
from wcll.training.optimizers import RunAdam, StackedAdam

K, N, BATCH = 5, 90, 32
RATES = (1e-3, 1e-2)


def training(dtype=torch.float64, batch_size=BATCH, model=None, device="cpu"):
    return Training(model or {"name": "linear"}, K, 255.0, batch_size, 1e-4, dtype, torch.device(device))


def group(cases, seed=0, rates=RATES, n=N):
    rng = np.random.default_rng(seed)
    x = torch.from_numpy(rng.integers(0, 256, (n, 4, 5), dtype=np.uint8))
    losses = [
        RunLoss(LOSSES[case.name], tuple(case.options.items()), Context(**context(case, K, seed)),
                i * len(rates), (i + 1) * len(rates))
        for i, case in enumerate(cases)
    ]  # fmt: skip
    targets = Targets.of(torch.from_numpy(rng.integers(0, K, n)), K)
    return RunGroup(x, targets, seed, list(rates) * len(cases), losses)


def run(engine, epochs):
    for _ in range(epochs):
        engine.run_epoch()
    return engine


def difference(a, b, group_a=0, group_b=0, runs=slice(None)):
    first, second = a.parameters(group_a), b.parameters(group_b)
    assert first.keys() == second.keys()
    return max(float((first[name][runs] - second[name]).abs().max()) for name in first)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_engine_equals_plain_loop_after_twenty_steps(case):
    """Steps: 2 an epoch; the last incomplete batch is dropped by both."""
    fast, slow = (run(maker([group([case])], training()), 10) for maker in (LinearRuns, PlainLoop))
    assert difference(fast, slow) < 1e-10
    assert torch.allclose(fast.last_losses(0), slow.last_losses(0), atol=1e-10, rtol=1e-10)
    x = torch.randint(0, 256, (7, 4, 5), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(fast.predict(0, fast.prepare(x)), slow.predict(0, slow.prepare(x)), atol=1e-10)


def test_together_equals_alone_for_all_losses_at_once():
    fast = run(LinearRuns([group(CASES)], training()), 10)
    for i, case in enumerate(CASES):
        alone = run(LinearRuns([group([case])], training()), 10)
        assert difference(fast, alone, runs=slice(2 * i, 2 * i + 2)) < 1e-10, case.id


def test_groups_of_different_data_do_not_mix():
    cases = [
        Case("wcll", ("weight", "pi")),
        Case("forward", ("transition",)),
        Case("nn", ("marginal",)),
        Case("scarce", ("prior",)),
    ]
    together = run(LinearRuns([group(cases, seed) for seed in range(3)], training()), 25)
    for seed in range(3):
        alone = run(LinearRuns([group(cases, seed)], training()), 25)
        assert difference(together, alone, group_a=seed) < 1e-10
        assert torch.allclose(together.last_losses(seed), alone.last_losses(0), atol=1e-10)


TOLD = Case("forward", ("transition",))


@pytest.mark.parametrize("maker", [LinearRuns, PlainLoop])
def test_what_losses_are_told_changes_after_the_warm_up(maker):
    """The same as a training that another goes on with; a loss beside it sees no difference."""
    late = group([TOLD, Case("log")])
    early = dataclasses.replace(late, losses=[group([TOLD], seed=5).losses[0], late.losses[1]])
    told = dataclasses.replace(late.losses[0], early=early.losses[0], warm_up=3)
    warming = dataclasses.replace(late, losses=[told, late.losses[1]])
    first, second = run(maker([early], training()), 3), maker([late], training())
    assert second.load_state(first.state())
    warmed, cold = (run(maker([one], training()), 7) for one in (warming, late))
    assert difference(warmed, run(second, 4)) == 0
    ours, theirs = warmed.parameters(0)["layer.weight"], cold.parameters(0)["layer.weight"]
    assert not torch.equal(ours[:2], theirs[:2])
    assert torch.equal(ours[2:], theirs[2:])


def test_fewer_samples_than_a_batch():
    fast, slow = (run(maker([group([Case("log")], n=20)], training()), 10) for maker in (LinearRuns, PlainLoop))
    assert difference(fast, slow) < 1e-10


def test_whole_array_adam_equals_the_fused_kernel_and_torchs(monkeypatch):
    rates = torch.tensor([1e-3, 1e-3, 1e-2, 5e-4], dtype=torch.float64)
    start = torch.randn(1, 4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    fused = StackedAdam(start.clone(), rates[None], weight_decay=1e-2)
    monkeypatch.setattr("wcll.training.optimizers._FUSED", None)
    whole = StackedAdam(start.clone(), rates[None], weight_decay=1e-2)
    assert not whole._parts
    assert len(fused._parts) == 3
    monkeypatch.undo()
    rows = [torch.nn.Parameter(row.clone()) for row in start[0]]
    theirs = [torch.optim.Adam([row], lr=float(rate), weight_decay=1e-2) for row, rate in zip(rows, rates, strict=True)]
    runs = torch.nn.Parameter(start[0].clone())
    own = RunAdam([runs], rates, weight_decay=1e-2)
    for step in range(50):
        gradient = torch.randn(4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(step))
        for optimiser in (fused, whole):
            optimiser.gradient.copy_(gradient[None])
            optimiser.step()
        for row, optimiser, part in zip(rows, theirs, gradient, strict=True):
            row.grad = part.clone()
            optimiser.step()
        runs.grad = gradient.clone()
        own.step()
    for found in (fused.parameters[0], whole.parameters[0], runs.detach()):
        assert torch.allclose(found, torch.stack([row.detach() for row in rows]), atol=1e-12)


def test_the_engine_is_chosen_for_linear_models_only():
    assert isinstance(make_engine([group([Case("log")])], training()), LinearRuns)
    assert isinstance(make_engine([group([Case("log")])], training(), plain=True), PlainLoop)
    assert isinstance(make_engine([group([Case("log")])], training(model={"name": "mlp", "hidden": 4})), PlainLoop)


@pytest.mark.parametrize("name", ["small", "digits"])
def test_a_suite_has_the_same_table_with_both(name):
    suite = parse_suite(SMALL, "small") if name == "small" else load_suite(name)
    suite = dataclasses.replace(suite, settings={**suite.settings, "dtype": "float64", "epochs": 12})
    tables = []
    for plain in (False, True):
        rows = run_suite(suite, [0], torch.device("cpu"), plain=plain)
        tables.append(to_csv([build_table(suite, spec, rows, [0]) for spec in suite.tables]))
    assert tables[0] == tables[1]


MEASURED = """
import re, sys
from pathlib import Path
import torch
from wcll.experiments import Store
from wcll.experiments.grouping import plan
from wcll.experiments import load_suite
from wcll.experiments.worker import Tasks, execute
from wcll.experiments.run import estimate
from wcll.experiments.request import RunRequest
from wcll.datasets import load_dataset
def status(name):
    return 1024 * int(re.search(rf"{name}:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
torch.set_num_threads(1)
jobs = plan(list(load_suite("wide.toml").all_trials()), together=64)
warm = plan(list(load_suite("warm.toml").all_trials()), together=64)
with Store(Path("warm.sqlite")) as store:
    execute(RunRequest(store, device="cpu"), warm, store, Tasks(load_dataset))  # what the first step of all loads stays
for limit in sys.argv[1:]:
    Path("/proc/self/clear_refs").write_text("5")
    start = status("VmRSS")
    with Store(Path(f"{limit}.sqlite")) as store:
        execute(RunRequest(store, device="cpu", memory=int(limit)), jobs, store, Tasks(load_dataset))
    print(status("VmHWM") - start)
"""

WIDE = """
[settings]
dataset = "wide.npz"
imbalance = "none"
labels = "uniform"
epochs = 1
model = MODEL
[grid]
lr = [1e-3, 2e-3, 3e-3, 4e-3, 5e-3, 6e-3, 7e-3, 8e-3, 9e-3]
[[rows]]
loss = "log"
[[rows]]
loss = "exp"
[[rows]]
loss = "l-uw"
[[rows]]
loss = "pc"
"""


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="no /proc: peaks cannot be measured")
@pytest.mark.parametrize(
    ("model", "limits"), [('"linear"', [150_000_000, 90_000_000]), ('{ name = "mlp", hidden = 100 }', [150_000_000])]
)
def test_peak_memory_stays_under_the_limit(model, limits, tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (10_000, 28, 28), dtype=np.uint8), rng.integers(0, 10, 10_000)
    np.savez(tmp_path / "wide.npz", x=x[:5000], y=y[:5000], x_test=x[5000:], y_test=y[5000:])
    np.savez(tmp_path / "warm.npz", x=x[:200], y=y[:200], x_test=x[:200], y_test=y[:200])
    for name in ("wide", "warm"):
        (tmp_path / f"{name}.toml").write_text(WIDE.replace("wide", name).replace("MODEL", model))
    child = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, limits)],
        cwd=tmp_path,
        env={**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1"},  # what is freed is given back
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    for limit, peak in zip(limits, child.stdout.split(), strict=True):
        assert 0.3 * limit < int(peak) < 1.1 * limit


def test_too_little_memory_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SMALL)
    assert cli(["run", "small.toml", "--memory", "10kB"]) == 2
    assert "--memory: expected at least" in capsys.readouterr().err
    assert cli(["run", "small.toml", "--memory", "little"]) == 2
    assert "--memory: expected a size such as 15MB" in capsys.readouterr().err


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


@needs_gpu
@pytest.mark.parametrize(
    "case", [c for c in CASES if c.name != "op-w"], ids=lambda case: case.id
)  # that one is chaotic
def test_on_a_gpu_the_numbers_are_the_same(case):
    slow = run(PlainLoop([group([case])], training()), 25)
    fast = run(LinearRuns([group([case], seed) for seed in (0, 1)], training(device="cuda")), 25)
    first = {name: value.cpu() for name, value in fast.parameters(0).items()}
    assert max(float((first[name] - value).abs().max()) for name, value in slow.parameters(0).items()) < 1e-9


@needs_gpu
def test_a_suite_on_a_gpu_has_the_same_table():
    suite = parse_suite(SMALL, "small")
    tables = []
    for device in ("cpu", "cuda"):
        rows = run_suite(suite, [0, 1], torch.device(device))
        tables.append(to_csv([build_table(suite, spec, rows, [0, 1]) for spec in suite.tables]))
    assert tables[0] == tables[1]


@needs_gpu
@pytest.mark.parametrize("streams", [1, 2])
@pytest.mark.parametrize(
    "model",
    [
        {"name": "mlp", "hidden": 7, "dropout": 0.3},
        {"name": "cnn9", "width": 4, "dropout": 0.0},
        {"name": "cnn9", "width": 4},
    ],
)
def test_recorded_steps_equal_the_plain_loop(model, streams):
    """In float64, with drop-out and batch norm, over epochs: two groups, all losses."""
    cases = [Case("wcll", ("weight", "pi")), Case("nn", ("marginal",)), Case("log"), Case("forward", ("transition",))]

    def image_group(seed):
        plain = group(cases, seed)
        rng = np.random.default_rng(seed)
        return dataclasses.replace(plain, x=torch.from_numpy(rng.integers(0, 256, (N, 3, 8, 8), dtype=np.uint8)))

    both = [image_group(0), image_group(1)]
    fast = run(CapturedRuns(both, training(model=model, device="cuda"), streams=streams), 10)
    slow = run(PlainLoop(both, training(model=model, device="cuda")), 10)
    for index in (0, 1):
        assert difference(fast, slow, group_a=index, group_b=index) < 1e-9
        assert torch.allclose(fast.last_losses(index), slow.last_losses(index), atol=1e-9)
        x = both[0].x[:9]
        assert torch.allclose(fast.predict(index, fast.prepare(x)), slow.predict(index, slow.prepare(x)), atol=1e-9)


@pytest.mark.parametrize(
    ("model", "normalised"),
    [
        ({"name": "mlp", "hidden": 7, "dropout": 0.3}, False),
        ({"name": "cnn9", "width": 2}, False),
        ({"name": "cnn9", "width": 2}, True),
    ],
)
def test_steps_that_a_gpu_would_record_equal_the_plain_loop(model, normalised, without_streams):
    """On a CPU, where nothing is recorded: drop-out of an epoch drawn at once, each network alone, two groups."""
    cases, both = [Case("log"), Case("forward", ("transition",))], []
    for seed in (0, 1):
        images = np.random.default_rng(seed).integers(0, 256, (N, 3, 8, 8), dtype=np.uint8)
        both.append(dataclasses.replace(group(cases, seed), x=torch.from_numpy(images)))
    if normalised:
        both = [dataclasses.replace(one, standard=Standard.of(one.x // (1 + one.seed), 255.0)) for one in both]
    fast, slow = (run(maker(both, training(model=model)), 4) for maker in (CapturedRuns, PlainLoop))
    for index in (0, 1):
        assert difference(fast, slow, group_a=index, group_b=index) < 1e-9
        x = both[0].x[:9]
        assert torch.allclose(fast.predict(index, fast.prepare(x)), slow.predict(index, slow.prepare(x)), atol=1e-9)
    alone = run(PlainLoop(both[1:], training(model=model)), 4)
    assert difference(slow, alone, group_a=1) == 0


# Several labels, sample weights, a user's own loss: in every engine, and from one training to the next


def rich_group(case, seed=0):
    """Label sets where the loss takes them, and a weight for every sample."""
    rng = np.random.default_rng(seed)
    plain = group([case], seed)
    weight = torch.from_numpy(rng.uniform(0.2, 2.0, N))
    ybar = labels(case, N, K, seed)
    return dataclasses.replace(plain, targets=Targets.of(ybar, K, weight / weight.mean(), float(weight.mean())))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_label_sets_and_sample_weights_equal_the_plain_loop(case):
    with_means = dataclasses.replace(training(), mean_losses=True)
    fast, slow = (run(maker([rich_group(case)], with_means), 10) for maker in (LinearRuns, PlainLoop))
    assert difference(fast, slow) < 1e-10
    assert torch.allclose(fast.mean_losses(0), slow.mean_losses(0), atol=1e-10, rtol=1e-10)
    assert torch.allclose(fast.last_losses(0), slow.last_losses(0), atol=1e-10, rtol=1e-10)


def test_a_loss_of_ones_own_equals_the_registered_one():
    def own(logits, targets):
        assert logits.shape[0] == 1
        assert targets.mask.ndim == 2
        return LOSSES["log"].function(logits, targets)

    plain = [group([Case("log")], seed, rates=(1e-2,)) for seed in (0, 1)]
    loss = RunLoss(LossSpec.own(own), (), Context(), 0, 1)
    mine = [dataclasses.replace(one, losses=[loss]) for one in plain]
    first, second = (run(PlainLoop(groups, training()), 10) for groups in (plain, mine))
    assert difference(first, second, 1, 1) == 0


@pytest.mark.parametrize("model", [{"name": "linear"}, {"name": "mlp", "hidden": 4, "dropout": 0.3}])
@pytest.mark.parametrize("maker", [make_engine, PlainLoop])
def test_training_goes_on_from_a_state_on_other_data(maker, model):
    groups = [group([Case("log")], seed=0)]
    whole, begun = (maker(groups, training(model=model)) for _ in range(2))
    run(whole, 6)
    kept = {name: tensor.clone() for name, tensor in run(begun, 3).state().items()}
    other = dataclasses.replace(groups[0], x=groups[0].x[:50], targets=groups[0].targets[:50])
    elsewhere = maker([other], training(model=model))
    assert elsewhere.load_state(kept)
    assert elsewhere.epoch == 3
    again = maker(groups, training(model=model))
    assert again.load_state(elsewhere.state())
    assert difference(run(again, 3), whole) == 0
    fresh = maker(groups, training(model=model))
    fresh.load_parameters(0, whole.parameters(0))
    x = groups[0].x[:9]
    assert torch.equal(fresh.predict(0, fresh.prepare(x)), whole.predict(0, whole.prepare(x)))
    exported = predict_logits(whole.export(0), training().numbers(x))
    torch.testing.assert_close(exported, whole.predict(0, whole.prepare(x)), rtol=1e-12, atol=1e-12)


def test_the_state_of_other_runs_is_refused_and_changes_nothing():
    engine = run(make_engine([group([Case("log")])], training()), 1)
    before = {name: tensor.clone() for name, tensor in engine.parameters(0).items()}
    assert not engine.load_state(make_engine([group([Case("log"), Case("exp")])], training()).state())
    assert not engine.load_state({})
    assert all(torch.equal(engine.parameters(0)[name], tensor) for name, tensor in before.items())


def test_every_observer_sees_every_epoch_and_any_may_stop():
    engine, seen = make_engine([group([Case("log")])], training()), []
    train(engine, 10, [lambda e: seen.append(("a", e.epoch)) or e.epoch == 3, lambda e: seen.append(("b", e.epoch))])
    assert seen == [(name, epoch) for epoch in (1, 2, 3) for name in "ab"]
    train(engine, 5, [])
    assert engine.epoch == 5


def test_threads_are_as_before_afterwards():
    before = torch.get_num_threads()
    with suppress(KeyError), torch_threads(3):
        assert torch.get_num_threads() == 3
        raise KeyError
    assert torch.get_num_threads() == before
    with torch_threads(None):
        assert torch.get_num_threads() == before


def test_threads_are_as_before_when_blocks_overlap_in_several_threads():
    before, entered, first_is_out = torch.get_num_threads(), threading.Event(), threading.Event()
    try:
        torch.set_num_threads(3)

        def other():
            with torch_threads(1):
                entered.set()
                first_is_out.wait(PATIENCE)

        thread = threading.Thread(target=other)
        with torch_threads(1):
            thread.start()
            entered.wait(PATIENCE)
        first_is_out.set()
        thread.join()
        seen = []
        late = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
        late.start()
        late.join()
        assert seen == [3]
    finally:
        torch.set_num_threads(before)


@needs_gpu
def test_recording_is_not_disturbed_by_garbage():
    """An older graph that lies in a cycle must not be destroyed while another is recorded."""

    class Cycle:
        pass

    def allocates():
        gc.set_threshold(5, 1, 1)  # from here on the collector starts on its own, at nearly every object
        for _ in range(200):
            one = Cycle()
            one.itself = one
        torch.zeros(3, device="cuda").add_(1)
        gc.set_threshold(10**6)

    thresholds = gc.get_threshold()
    replay = Replay(torch.device("cuda"))
    try:
        for _ in range(WARM_UP):
            replay(allocates)
        old = Cycle()
        settings = training(model={"name": "mlp", "hidden": 4}, device="cuda")
        old.engine, old.itself = run(CapturedRuns([group([Case("log")])], settings), 3), old
        assert old.engine._replay.graph is not None
        del old
        replay(allocates)
    finally:
        gc.set_threshold(*thresholds)
    torch.cuda.synchronize()
    assert replay.graph is not None
    assert gc.isenabled()


@pytest.mark.parametrize("kind", [LinearRuns, PlainLoop, CapturedRuns])
def test_an_engine_goes_with_its_samples(kind, without_streams):
    """At once, not when garbage is collected: whoever trains many models has room for few."""
    model = {"name": "linear"} if kind is LinearRuns else {"name": "mlp", "hidden": 4}
    gc.collect()
    gc.disable()
    try:
        engine = run(kind([group([Case("log")])], training(model=model)), 1)
        gone = weakref.ref(engine)
        del engine
        assert gone() is None
    finally:
        gc.enable()
