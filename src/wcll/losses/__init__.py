"""Losses for complementary labels: the registry, the targets they take, and a module class for each.

``wcll.losses.WCLLLoss(weight=...)`` and its sisters are ``torch.nn.Module``; the plain functions are in
:mod:`wcll.functional`.
"""

# ruff: noqa: I001  (families stand in the order of their papers, and so do their losses in the registry)
from wcll.losses.pairwise import PCLoss
from wcll.losses.unbiased import FREELoss, GALoss, NNLoss
from wcll.losses.forward import ForwardLoss
from wcll.losses.upper_bounds import EXPLoss, LOGLoss
from wcll.losses.bounded import GCELoss, MAELoss, MSELoss, PHuberLoss
from wcll.losses.surrogate import SCLEXPLoss, SCLNLLoss
from wcll.losses.discriminative import LUWLoss, LWLoss, OPLoss, OPWLoss
from wcll.losses.robust import NCLLLoss
from wcll.losses.onevsrest import MLCLLLoss, SCARCELoss
from wcll.losses.weighted import WCLLLoss
from wcll.losses.penalised import WCLLPenaltyLoss
from wcll.losses.adaptive import WCLLAdaptiveLoss
from wcll.losses.ordinary import CrossEntropyLoss, LogitAdjustedLoss
from wcll.losses.arguments import Transition
from wcll.losses.base_losses import BASES
from wcll.losses.modules import LossModule
from wcll.losses.spec import LOSSES, Context, LossSpec, Table1
from wcll.losses.targets import Targets

__all__ = ["BASES", "LOSSES", "Context", "LossModule", "LossSpec", "Table1", "Targets", "Transition"]
__all__ += ["CrossEntropyLoss", "EXPLoss", "FREELoss", "ForwardLoss", "GALoss", "GCELoss", "LOGLoss", "LUWLoss"]
__all__ += ["LWLoss", "LogitAdjustedLoss", "MAELoss", "MLCLLLoss", "MSELoss", "NCLLLoss", "NNLoss", "OPLoss", "OPWLoss"]
__all__ += ["PCLoss", "PHuberLoss", "SCARCELoss", "SCLEXPLoss", "SCLNLLoss", "WCLLAdaptiveLoss", "WCLLLoss"]
__all__ += ["WCLLPenaltyLoss"]
