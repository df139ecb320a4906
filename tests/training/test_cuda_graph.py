"""Networks are compiled once for all models of a shape, whatever they are trained on, and where that is worth it."""

from __future__ import annotations

import dataclasses
import gc
import weakref

import pytest
import torch

from small import suite_toml
from wcll.datasets import load_dataset
from wcll.experiments import Store, parse_suite, worker
from wcll.experiments.grouping import plan
from wcll.experiments.request import RunRequest
from wcll.losses import LOSSES, Context, Targets
from wcll.models.layers import RunDropout, prepare_dropouts
from wcll.models.registry import build_model
from wcll.training import RunGroup, RunLoss, Training, cuda_graph
from wcll.training.cuda_graph import recorded_forward, worth_compiling

PLACE = torch.tensor([1])
traced = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # parts of torch that torch itself loads


@pytest.fixture
def compilations(monkeypatch):
    """What torch would compile: it is traced and guarded as ever, and then left as it is."""
    import torch._inductor.compile_fx as inductor

    found = []

    def compile_fx(graph, *given, **more):
        found.append(graph)
        return graph.forward

    monkeypatch.setattr(inductor, "compile_fx", compile_fx)
    torch._dynamo.reset()
    yield found
    torch._dynamo.reset()


def network(seed=0, steps=3, *, classes=3, rate=0.25):
    """A network for which drop-out was drawn for so many steps."""
    model = build_model({"name": "cnn9", "width": 1, "dropout": rate}, (1, 8, 8), classes, [seed], torch.float32)
    model.train()(torch.rand(4, 1, 8, 8), 0)
    for layer in model.modules():
        if isinstance(layer, RunDropout):
            prepare_dropouts([layer], 5, steps)
    return model


def step(model, x):
    """Compiled anew, as every unit of a suite does it."""
    logits = recorded_forward(model, compiled=True)(x, PLACE)
    logits.sum().backward()
    return logits


@traced
def test_all_networks_of_a_shape_share_what_is_compiled(compilations):
    """More than the eight times that torch would compile a function; other data, with more steps an epoch, change nothing."""
    x, forgotten = torch.rand(4, 1, 8, 8), []
    for seed in range(12):
        model, other = network(seed, steps=3 + seed // 4), network(seed)
        assert torch.equal(step(model, x), other(x, 6))  # the second of the steps from the fifth on
        forgotten.append(weakref.ref(model))
        del model
    assert len(compilations) == 1
    gc.collect()
    assert not any(one() for one in forgotten)  # what is compiled holds no network: its memory is free again


@traced
def test_more_shapes_are_compiled_than_torch_would(compilations):
    x = torch.rand(4, 1, 8, 8)
    with torch._dynamo.config.patch(recompile_limit=1):
        for classes in (3, 4, 3, 4):
            step(network(classes=classes), x)
    assert len(compilations) == 2


def group(runs, n=1000):
    x, y = torch.zeros(n, 1, 8, 8, dtype=torch.uint8), torch.zeros(n, dtype=torch.int64)
    return RunGroup(x, Targets.of(y, 3), 0, [1e-3] * runs, [RunLoss(LOSSES["log"], (), Context(), 0, runs)])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"epochs": 100}, True),  # 100 epochs of 10 steps, 40 runs
        ({"epochs": 99}, False),
        ({"epochs": 99, "planned": 99 * 60}, True),  # a part of what is planned
        ({"epochs": 2, "planned": 3999}, False),
        ({"epochs": 2, "planned": 4000}, True),
        ({"epochs": 100, "planned": 80}, True),  # more than was planned
        ({"epochs": 100, "dtype": torch.float64}, False),
        ({"epochs": 100, "model": {"name": "mlp"}}, False),
    ],
)
def test_what_is_compiled_serves_all_that_is_planned(changes, expected, monkeypatch):
    monkeypatch.setattr(cuda_graph, "find_spec", lambda name: object())
    shared = Training({"name": "cnn9", "width": 1}, 3, 255.0, 100, 1e-4, torch.float32, torch.device("cpu"))
    assert worth_compiling([group(20), group(20)], dataclasses.replace(shared, **changes)) is expected


def test_trainings_are_told_what_is_planned(tmp_path, monkeypatch):
    """All with their network that this process began with, also when most of it is done."""
    jobs = plan(list(parse_suite(suite_toml(epochs=2), "small").all_trials([0, 1])), together=2)
    by_network, told, real = {}, [], worker.train
    for job in jobs[1:]:
        by_network[job.network] = by_network.get(job.network, 0) + job.epochs

    def train(seen, device, *, planned, **more):
        told.append((seen[0][0].network, planned))
        return real(seen, device, planned=planned, **more)

    tasks = worker.Tasks(load_dataset)
    with Store(tmp_path / "s.sqlite") as store:
        worker.execute(RunRequest(store, device="cpu"), jobs[:1], store, tasks)
        monkeypatch.setattr(worker, "train", train)
        worker.execute(RunRequest(store, device="cpu"), jobs, store, tasks)
    assert told == [(job.network, by_network[job.network]) for job in jobs[1:]]
    assert min(planned for _, planned in told) > 4
