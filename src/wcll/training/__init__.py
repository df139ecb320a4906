"""Training loops for stacks of runs."""

from wcll.training.batches import batches
from wcll.training.loop import EpochCallback, LossGroup, Trainer, predict_logits
from wcll.training.optim import RunAdam

__all__ = ["EpochCallback", "LossGroup", "RunAdam", "Trainer", "batches", "predict_logits"]
