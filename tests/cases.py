"""Examples of every registered loss in each of its variants, for the contract tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from wcll.losses import LOSSES, Targets
from wcll.testing import example_context, example_labels


@dataclass(frozen=True)
class Case:
    """A loss with some options, given some of the context."""

    name: str
    context: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return "-".join([self.name, *self.context, *map(str, self.options.values())])

    @property
    def several(self) -> bool:
        return LOSSES[self.name].several


def _variants() -> list[Case]:
    plain = ["log", "exp", "mae", "mse", "gce", "phuber", "l-w", "l-uw", "scl-nl", "scl-exp", "op", "op-w"]
    cases = [Case(name, context) for name in (*plain, "cross-entropy") for context in ((), ("weight",))]
    cases += [Case("logit-adjusted", context) for context in (("marginal",), ("marginal", "weight"))]
    cases += [Case("logit-adjusted", ("marginal",), {"tau": 0.4})]
    cases += [Case("pc", (), {"surrogate": s}) for s in ("sigmoid", "ramp")] + [Case("pc", ("weight",))]
    cases += [Case("gce", (), {"q": 0.3}), Case("phuber", (), {"tau": 3.0})]
    cases += [Case("forward", ("transition",)), Case("forward", ("transition", "weight"))]
    cases += [Case("forward", ("transition",), {"balance": 0.3})]
    contexts = [(), ("marginal",), ("transition",), ("transition", "marginal"), ("weight", "marginal")]
    cases += [Case(name, context) for name in ("free", "nn") for context in contexts]
    cases += [Case(name, context) for name in ("ga", "ncll") for context in contexts if "marginal" in context]
    bases = ("ce", "mae", "mse", "gce", "phuber", "symmetric")
    cases += [Case(name, ("marginal",), {"base": b}) for name in ("free", "nn", "ga") for b in bases]
    cases += [Case("nn", ("marginal",), {"beta": 0.3})]
    robust = ("mae", "weighted-mae", "gce", "symmetric")
    cases += [Case("ncll", ("transition", "marginal"), {"base": b}) for b in robust]
    cases += [Case("ncll", ("marginal",), {"base": "weighted-mae"})]
    cases += [Case("ml-cll", c, {"variant": v}) for v in ("gdf", "unbiased") for c in ((), ("weight",))]
    cases += [Case("scarce", ("prior",))]
    readings = ("eq9", "algorithm1", "eq12", "eq10")
    cases += [Case("wcll", ("weight", "pi"), {"reading": r, "base": b}) for r in readings for b in ("ce", "mae")]
    cases += [Case("wcll", ("weight", "pi"), {"base": b}) for b in ("mse", "gce", "phuber", "symmetric")]
    cases += [Case("wcll-penalty", ("weight", "pi"), {"reading": r, "strength": 2.0}) for r in readings]
    kinds = ({"strength": 0.0}, {}, {"bound": 0.2}, {"strength": 3.0, "power": 2.0, "bound": 0.1}, {"power": 1.5})
    cases += [Case("wcll-penalty", ("weight", "pi"), kind) for kind in kinds]
    cases += [Case("wcll-penalty", ("weight", "pi"), {"base": b}) for b in ("mae", "mse")]
    cases += [Case("wcll-adaptive", ("weight",), {"mix": mix}) for mix in (0.0, 0.5, 1.0)]
    cases += [Case("wcll-adaptive", ("weight",), {"base": b}) for b in ("mae", "mse")]
    return cases


CASES = _variants()


def context(case: Case, k: int, seed: int = 0) -> dict[str, Any]:
    """Values, in float64, for what the case takes from the context."""
    return example_context(case.context, k, seed)


def labels(case: Case, n: int, k: int, seed: int = 0) -> Tensor:
    """One label a sample, or label sets where the loss takes them."""
    return example_labels(n, k, several=case.several, seed=seed)


def value(
    case: Case, f: Tensor, ybar: Tensor, sample_weight: Tensor | None = None, mass: float = 1.0, **given: Any
) -> Tensor:
    """The loss of the case."""
    targets = Targets.of(ybar, f.shape[-1], sample_weight, mass)
    return LOSSES[case.name].function(f, targets, **given, **case.options)
