"""Complementary labels: imbalance, transition matrices, drawing, what labels alone tell, class weights."""

from wcll.labels.alarms import Check, check_counts, check_table
from wcll.labels.beliefs import Belief
from wcll.labels.cost import CostIfWrong, cost_if_wrong
from wcll.labels.cost_table import CostTable, costs_if_wrong
from wcll.labels.draw import make_complementary
from wcll.labels.families import FAMILIES, EstimatedTransition, Family, FamilyTransition
from wcll.labels.health import LabelHealth, label_health
from wcll.labels.imbalance import imbalance_counts, long_tailed_counts, make_imbalance, step_counts
from wcll.labels.masks import check_mask, to_mask, to_pairs
from wcll.labels.pairs import PairsTransition, transition_from_pairs
from wcll.labels.repeated import RepeatedTransition, transition_from_repeated
from wcll.labels.statistics import (
    Estimate,
    InverseSizeRecovery,
    LabelSummary,
    describe_labels,
    label_counts,
    observed_marginal,
    ordinary_prior,
    recover_inverse_size,
)
from wcll.labels.transition import (
    TRANSITIONS,
    biased_transition,
    complementary_prior,
    inverse_size_transition,
    make_transition,
    noisy_transition,
    select_by_marginal,
    selected_joint,
    shifted_transition,
    transition_from_pi,
    uniform_transition,
)
from wcll.labels.weights import WEIGHTINGS, ClassWeights, class_weights, eq13, resample

__all__ = ["FAMILIES", "TRANSITIONS", "WEIGHTINGS", "Belief", "Check", "ClassWeights", "Estimate"]
__all__ += ["EstimatedTransition", "Family", "FamilyTransition", "PairsTransition", "RepeatedTransition"]
__all__ += ["InverseSizeRecovery", "LabelSummary", "biased_transition", "check_counts", "check_mask", "check_table"]
__all__ += ["CostIfWrong", "CostTable", "cost_if_wrong", "costs_if_wrong"]
__all__ += ["LabelHealth", "class_weights", "complementary_prior", "label_health"]
__all__ += ["describe_labels", "eq13", "imbalance_counts", "inverse_size_transition", "label_counts"]
__all__ += ["long_tailed_counts", "make_complementary", "make_imbalance", "make_transition", "noisy_transition"]
__all__ += ["observed_marginal", "ordinary_prior", "recover_inverse_size", "resample", "select_by_marginal"]
__all__ += [
    "selected_joint",
    "shifted_transition",
    "step_counts",
    "to_mask",
    "to_pairs",
    "transition_from_pairs",
    "transition_from_pi",
    "transition_from_repeated",
    "uniform_transition",
]
