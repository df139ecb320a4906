"""How runs are trained: engines, one loop over epochs, and what they are given."""

from wcll.training.device import dtype_and_device, torch_threads
from wcll.training.engine import Engine
from wcll.training.engines import make_engine
from wcll.training.epochs import Observer as Observer
from wcll.training.epochs import train
from wcll.training.ranks import together
from wcll.training.recipe import Recipe
from wcll.training.runs import RunGroup, RunLoss, Training
from wcll.training.standard import Standard as Standard

__all__ = ["Engine", "Recipe", "RunGroup", "RunLoss", "Training", "dtype_and_device", "make_engine", "together"]
__all__ += ["torch_threads", "train"]
