"""How runs are trained: engines, one loop over epochs, and what they are given."""

from wcll.training.batches import batches
from wcll.training.device import dtype_and_device, threads_for, torch_threads, training_threads
from wcll.training.engine import Engine
from wcll.training.engines import make_engine
from wcll.training.epochs import Observer, train
from wcll.training.optim import RunAdam
from wcll.training.ranks import together
from wcll.training.recipe import PLAIN, Recipe, recipe_of
from wcll.training.runs import RunGroup, RunLoss, Training
from wcll.training.standard import Standard

__all__ = [
    "PLAIN",
    "Engine",
    "Observer",
    "Recipe",
    "RunAdam",
    "RunGroup",
    "RunLoss",
    "Standard",
    "Training",
    "batches",
    "dtype_and_device",
    "make_engine",
    "recipe_of",
    "threads_for",
    "together",
    "torch_threads",
    "train",
    "training_threads",
]
