"""Training: engines, the loop over epochs, recipes, and runs that share data."""

from wcll.training.distributed import together
from wcll.training.engine import Engine, make_engine, train
from wcll.training.recipe import Recipe
from wcll.training.runs import RunGroup, RunLoss, Training, dtype_and_device, torch_threads

__all__ = ["Engine", "Recipe", "RunGroup", "RunLoss", "Training", "dtype_and_device", "make_engine", "together"]
__all__ += ["torch_threads", "train"]
