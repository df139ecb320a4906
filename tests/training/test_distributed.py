"""Several processes that train one model: the same numbers as one process, for every loss."""

from __future__ import annotations

import pytest
import torch

import ranks
from wcll.exceptions import InputError
from wcll.training.distributed import together


def difference(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    assert one.keys() == other.keys()
    return max(float((one[name] - other[name]).abs().max()) for name in one)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What two processes have written after training every model."""
    place = tmp_path_factory.mktemp("ranks")
    said = ranks.start(place)
    assert [one.returncode for one in said] == [0, 0], said[0].stderr + said[1].stderr
    assert not any(one.stderr for one in said)
    for rank, one in enumerate(said):
        (place / f"said-{rank}").write_text(one.stdout)
    return place


@pytest.mark.parametrize(
    ("kind", "labels"), [*((kind, "one") for kind in ranks.MODELS), ("linear", "several"), ("mlp", "several")]
)
def test_two_processes_take_the_steps_of_one(kind, labels, folder):
    """Ten steps with every loss, parts of 4 and 5 samples, sample weights; drop-out, batch norm and mixup too."""
    alone = ranks.trained(kind, labels)
    first, second = (torch.load(folder / f"{kind}-{labels}-{rank}.pt") for rank in (0, 1))
    assert difference(alone, first) < 1e-10
    assert difference(first, second) == 0


def test_classes_were_absent_from_parts_of_batches(folder):
    """Or the test above would not show what it is for."""
    for rank in (0, 1):
        assert int((folder / f"said-{rank}").read_text().splitlines()[0]) >= 5


def test_a_loss_of_each_part_alone_would_not_do():
    """The mean of the gradients of two parts is another gradient, for a loss that cuts off class sums."""
    kind = ranks.group("linear")
    case = next(loss for loss in kind.losses if loss.spec.name == "nn")
    loss = case.value(case.context.to(torch.empty(0, ranks.K, dtype=torch.float64)))
    logits = torch.randn(1, 9, ranks.K, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    whole = loss(logits, kind.targets[slice(9)])
    parts = [
        4 / 9 * loss(logits[:, :4], kind.targets[slice(4)]),
        5 / 9 * loss(logits[:, 4:], kind.targets[slice(4, 9)]),
    ]
    assert abs(float(whole - sum(parts))) > 1e-3


@pytest.mark.parametrize("kind", ["linear", "mlp"])
def test_one_process_goes_on_where_two_were(kind, folder):
    states = [torch.load(folder / f"state-{kind}-{rank}.pt") for rank in (0, 1)]
    assert difference(*states) == 0
    engine = ranks.engine(kind)
    assert engine.load_state(states[0])
    while engine.epoch < ranks.EPOCHS:
        engine.run_epoch()
    assert difference({**engine.parameters(0), "losses": engine.mean_losses(0)}, ranks.trained(kind)) < 1e-10


def test_processes_that_are_to_train_different_things_say_so(folder):
    line = "expected processes that train the same, got others; give all the same data, settings and random_state"
    for rank in (0, 1):
        assert (folder / f"said-{rank}").read_text().splitlines()[2:] == [f"together: {line}"]


def test_time_is_over_for_all_processes_when_it_is_for_the_first(folder):
    """Else one would wait for another that has stopped."""
    first, second = ((folder / f"said-{rank}").read_text().splitlines()[1] for rank in (0, 1))
    assert first == second
    assert "'cut': True" in first


def test_together_needs_processes():
    with pytest.raises(InputError, match=r"together: expected processes that torch.distributed has"), together():
        pass
