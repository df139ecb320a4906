"""Complementary labels: imbalance, transition matrices, drawing, diagnostics, estimates of Q, class weights."""

from wcll.labels.counts import Estimate, observed_marginal
from wcll.labels.diagnostics import LabelHealth, label_health
from wcll.labels.encoding import to_pairs
from wcll.labels.families import FAMILIES, EstimatedTransition, Family, FamilyTransition
from wcll.labels.family_selection import CostIfWrong, CostTable, cost_if_wrong, costs_if_wrong
from wcll.labels.goodness_of_fit import Check, check_counts, check_table
from wcll.labels.imbalance import imbalance_counts, make_imbalance
from wcll.labels.label_model import Belief
from wcll.labels.pairs import PairsTransition, transition_from_pairs
from wcll.labels.repeated import RepeatedTransition, transition_from_repeated
from wcll.labels.sampling import make_complementary
from wcll.labels.transition import (
    biased_transition,
    inverse_size_transition,
    noisy_transition,
    shifted_transition,
    transition_from_pi,
    uniform_transition,
)
from wcll.labels.weights import ClassWeights, class_weights, resample

__all__ = ["FAMILIES", "Belief", "Check", "ClassWeights", "CostIfWrong", "CostTable", "Estimate"]
__all__ += ["EstimatedTransition", "Family", "FamilyTransition", "LabelHealth", "PairsTransition"]
__all__ += ["RepeatedTransition", "biased_transition", "check_counts", "check_table", "class_weights"]
__all__ += [
    "cost_if_wrong",
    "costs_if_wrong",
    "imbalance_counts",
    "inverse_size_transition",
    "label_health",
    "make_complementary",
]
__all__ += ["make_imbalance", "noisy_transition", "observed_marginal", "resample", "shifted_transition", "to_pairs"]
__all__ += ["transition_from_pairs", "transition_from_pi", "transition_from_repeated", "uniform_transition"]
