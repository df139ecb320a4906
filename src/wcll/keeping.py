"""A fitted classifier in a file, and back."""

from __future__ import annotations

from math import prod
from os import PathLike
from typing import Any, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from wcll import __version__
from wcll._fitting import seed_of
from wcll._neighbors import Scaling
from wcll._validation import FloatArray
from wcll.fitted import FittedClassifier
from wcll.labels.weights import ClassWeights
from wcll.models.base import outline_model
from wcll.persistence import Saved, check_finite, open_model, plain_setting, write_model
from wcll.training import dtype_and_device


class KeptClassifier(FittedClassifier):
    """What :class:`wcll.ComplementaryClassifier` writes and reads."""

    history_: list[dict[str, Any]]
    label_totals_: FloatArray
    state_: dict[str, torch.Tensor]
    weights_: ClassWeights | None
    scaling_: Scaling | None
    selection_: list[dict[str, Any]]
    chosen_: dict[str, Any]
    random_state: Any

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted classifier to one safetensors file, with its settings as JSON; nothing is pickled."""
        check_is_fitted(self)
        settings = {name: plain_setting(name, value) for name, value in self.get_params(deep=False).items()}
        chosen = getattr(self, "chosen_", None)
        header = {
            "version": __version__,
            "settings": settings,
            "classes": self.classes_.tolist(),
            "classes_dtype": self.classes_.dtype.str,
            "input_shape": list(getattr(self, "image_shape_", [self.n_features_in_])),
            "image_bytes": bool(getattr(self, "image_bytes_", False)),
            "fitted": {**self.fitted_, "model": plain_setting("model", self.fitted_["model"])},
            "feature_names": getattr(self, "feature_names_in_", np.array([])).tolist(),
            "belief": self.belief_.to_dict(),
            "weights": self.weights_ and self.weights_.to_dict(),
            "label_totals": self.label_totals_.tolist(),
            "history": self.history_,
            "temperature": self.temperature_,
            "prior": self.prior_.tolist() if hasattr(self, "prior_") else None,
            "scaling": self.scaling_ and [values.tolist() for values in self.scaling_],
            "chosen": None if chosen is None else {name: plain_setting(name, value) for name, value in chosen.items()},
            "selection": getattr(self, "selection_", None),
        }
        tensors = self.network_.state_dict()
        check_finite("model", tensors)
        write_model(path, tensors, header)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """A classifier that :meth:`save` wrote, on this machine's device.

        It predicts as it did; training goes on with a fresh optimiser.
        """
        with open_model(path) as file:
            saved = Saved.of(file.header, cls._get_param_names())
            self = cls(**saved.settings)
            dtype, device = dtype_and_device(saved.fitted["dtype"], self.device)
            self.seed_, self.state_ = seed_of(self.random_state), {}
            self.classes_, self.temperature_ = saved.classes, saved.temperature
            if saved.prior is not None:
                self.prior_ = saved.prior
            self._shift()  # a target that cannot be had is said of the file
            network = outline_model(saved.fitted["model"], saved.input_shape, len(saved.classes), [self.seed_], dtype)
            tensors = file.read(network.state_dict())
            check_finite("tensors", tensors)
        network.load_state_dict(tensors, assign=True)
        self.network_, self.fitted_, self.scaling_ = network.to(device), saved.fitted, saved.scaling
        self.n_features_in_ = prod(saved.input_shape)
        if len(saved.input_shape) > 1:
            self.image_shape_, self.image_bytes_ = saved.input_shape, saved.image_bytes
        if saved.feature_names:
            self.feature_names_in_ = np.array(saved.feature_names, dtype=object)
        self.label_totals_, self.history_, self.n_iter_ = saved.label_totals, saved.history, len(saved.history)
        if saved.chosen is not None:
            self.chosen_, self.selection_ = saved.chosen, saved.selection or []
        self.belief_, self.transition_, self.weights_ = saved.belief, saved.belief.transition, saved.belief.weights
        return self
