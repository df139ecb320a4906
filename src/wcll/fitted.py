"""A fitted classifier: what it predicts, and how good complementary labels say that is."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from wcll._fitting import called, check_features, check_labels, check_target_prior, to_tensor
from wcll._validation import BoolArray, FloatArray, IntArray, finite_array
from wcll.evaluation import LabelFreeConfusion, complementary_table, label_free_accuracy, label_free_confusion
from wcll.evaluation.label_free import warn_of_contradiction
from wcll.exceptions import InputError, LabelWarning
from wcll.labels import Belief
from wcll.labels.goodness_of_fit import asked_by_features, asked_by_predictions
from wcll.models.base import Family, RunStack, alone, named, predict_logits
from wcll.training import dtype_and_device, torch_threads
from wcll.training.runs import threads_for


def _has_probabilities(self: Any) -> bool:
    fitted = getattr(self, "fitted_", None)
    link = fitted["link"] if fitted else self._loss()[0].link
    if link != "softmax":
        raise AttributeError(f"predict_proba: loss {self.loss!r} learns scores, not class probabilities")
    return True


class FittedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What :class:`wcll.ComplementaryClassifier` does once it has learnt; what these attributes are is said there."""

    classes_: NDArray[Any]
    network_: RunStack
    fitted_: dict[str, Any]
    belief_: Belief
    transition_: FloatArray
    temperature_: float
    prior_: FloatArray
    target_prior: Any
    device: str

    def _features(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        return check_features(self, X, reset=False)

    def _outputs(self, features: NDArray[Any]) -> torch.Tensor:
        """The network's own, as it was trained."""
        dtype, device = dtype_and_device(self.fitted_["dtype"], self.device)
        network = self.network_.to(device)
        turn = alone if network.family is Family.OWN else nullcontext  # what it draws is not of a fit's stream
        with torch_threads(threads_for(network, min(len(features), network.family.at_once))), turn():
            x = to_tensor(features, dtype, device)
            both = [x, x.flip(-1)] if self.fitted_["mirrored"] else [x]
            return torch.stack([predict_logits(network, one, precise=True)[0].double() for one in both]).mean(0)

    def _shift(self) -> FloatArray | None:
        """What the logarithms of probabilities change by for ``target_prior``: log target - log prior; or nothing."""
        target = check_target_prior(self.target_prior, len(self.classes_))
        if target is None:
            return None
        if not hasattr(self, "prior_"):
            expected = "None for a model that learnt no class probabilities, or was saved before their mean was kept"
            raise InputError("target_prior", expected, repr(self.target_prior))
        return np.log(target) - np.log(np.maximum(self.prior_, np.finfo(np.float64).tiny))

    def _scores(self, X: Any) -> torch.Tensor:
        """Outputs for the class shares that predictions are for; over the temperature, logarithms of probabilities."""
        return self._shifted(self._outputs(self._features(X)))

    def _shifted(self, logits: torch.Tensor) -> torch.Tensor:
        """Return outputs for the class shares that predictions are for."""
        shift = self._shift()
        return logits if shift is None else logits + self.temperature_ * torch.as_tensor(shift, device=logits.device)

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each sample, were classes as frequent as ``target_prior`` says."""
        index = self._scores(X).argmax(-1).cpu().numpy()
        names: NDArray[Any] = self.classes_[index]
        return names

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities, shape (n, k); only for losses that learn them.

        They are calibrated to complementary labels under ``belief_``, for the training samples' class shares or those
        of ``target_prior``: after ``loss="auto"`` their temperature is the one that makes held-out labels likeliest,
        before the model was fitted to these as well; else it is 1, and what training reached is all. Held-out labels
        tell how well: :func:`wcll.evaluation.label_free_reliability`.
        """
        proba: FloatArray = (self._scores(X) / self.temperature_).softmax(-1).cpu().numpy()
        return proba

    def as_trained(self, probabilities: ArrayLike) -> FloatArray:
        """What :meth:`predict_proba` gives, moved back to the class shares of the training samples.

        Complementary labels like those of training judge these and no others.
        """
        check_is_fitted(self)
        found = finite_array("probabilities", probabilities, (len(np.atleast_1d(probabilities)), len(self.classes_)))
        shift = self._shift()
        if shift is None:
            return found
        back: FloatArray = softmax(np.log(np.maximum(found, np.finfo(np.float64).tiny)) - shift, axis=1)
        return back

    def decision_function(self, X: Any) -> FloatArray:
        """Scores, shape (n, k); for two classes the difference of the second and the first, shape (n,)."""
        scores: FloatArray = self._scores(X).cpu().numpy()
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    @property
    def coef_(self) -> FloatArray:
        """Coefficients of a linear model, shape (k, d): a row a class, also for two classes."""
        weight = self._linear("coef_")["layer.weight"][0]
        if self.fitted_["mirrored"]:  # the mean over a sample and its mirror image is linear as well
            shape = getattr(self, "image_shape_", (self.n_features_in_,))
            weight = (weight + weight.view(-1, *shape).flip(-1).flatten(1)) / 2
        coefficients: FloatArray = weight.cpu().numpy()
        return coefficients

    @property
    def intercept_(self) -> FloatArray:
        """Constants of a linear model, shape (k,), for the class shares that predictions are for."""
        constants: FloatArray = self._linear("intercept_")["layer.bias"][0].cpu().numpy()
        shift = self._shift()
        return constants if shift is None else constants + self.temperature_ * shift

    def _linear(self, name: str) -> dict[str, torch.Tensor]:
        """Parameters of a linear model, copied; an AttributeError for others, as ``hasattr`` wants it."""
        if not hasattr(self, "network_"):
            raise AttributeError(f"{name}: the model is not fitted yet")
        if self.network_.family is not Family.LINEAR:
            model = self.fitted_["model"]
            kind = repr(named(model, "model")[0]) if isinstance(model, str | dict) else "your own"
            raise AttributeError(f"{name}: only linear models have one, and this is {kind}")
        return {key: value.to(torch.float64, copy=True) for key, value in self.network_.state_dict().items()}

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """An estimate of accuracy from complementary labels ``y``: unbiased if the assumed Q is right.

        Plain accuracy against complementary labels would reward the worst model. Do not compare different
        ``transition`` by it: each would be judged under its own assumption. For true labels use
        ``sklearn.metrics.accuracy_score(y_true, model.predict(X))``. With a ``target_prior`` these predictions are
        judged as they are, on samples like those of ``y``, where others would be right more often.

        Labels that contradict Q make it meaningless, which a :class:`wcll.LabelWarning` says; with predictions,
        held-out labels show more wrong Qs than label counts do in ``fit``. That nothing is said does not mean that Q is
        right: some wrong Qs no label can show. Labels that the model has learnt by heart
        may contradict even a Q that is right.
        """
        features = self._features(X)
        predicted = self._shifted(self._outputs(features)).argmax(-1).cpu().numpy()
        labels = check_labels(y, self.classes_, len(predicted)).values
        score = label_free_accuracy(labels, predicted, self.transition_, sample_weight=sample_weight)[0]
        if (question := self._question(features, labels, predicted)) is not None:
            warnings.warn(question, LabelWarning, stacklevel=2)
        else:
            warn_of_contradiction(labels, predicted, self.belief_, self.classes_, weight=sample_weight)
        return score

    def evaluate(self, X: Any, y: Any) -> LabelFreeConfusion:
        """Accuracy, balanced accuracy, F1 and recalls from complementary labels ``y`` that were not trained on.

        Each figure has a 95 % interval and a verdict, and rests on ``belief_``; whether the labels contradict that is
        said as well. "Ok" needs a Q that was measured (``transition_from_pairs``, ``transition_from_repeated``): no
        label can confirm one that is assumed, and figures that rest on it "can't be checked". One label a sample:
        several of one sample are no independent witnesses. ``print`` shows all. Accuracy is that on samples like those
        of ``y``, whatever ``target_prior`` says.
        """
        features = self._features(X)
        predicted = self._shifted(self._outputs(features)).argmax(-1).cpu().numpy()
        labels = check_labels(y, self.classes_, len(predicted)).values
        if labels.ndim == 2:
            expected, several = "one label a sample", "a mask, or several of a sample"
            raise InputError(called(y) or "y", expected, several, "take one of each sample; score takes sets")
        found = label_free_confusion(
            complementary_table(labels, predicted, len(self.classes_)), self.belief_, classes=self.classes_
        )
        question = self._question(features, labels, predicted)
        return found if question is None else found.withdrawn(question)

    def _question(self, features: NDArray[Any], labels: IntArray | BoolArray, predicted: IntArray) -> str | None:
        """Ask whether labels are true ones, if most name the prediction, or if neighbours predict them too well.

        A Q that was estimated with models may have learned true labels: that of popularity is the measure then.
        """
        belief, question = self.belief_, None
        if belief.basis is not None and belief.totals is not None and not belief.known:
            belief = Belief.of("popularity", belief.totals + 0.5)
        if labels.ndim == 1:
            question = asked_by_predictions(complementary_table(labels, predicted, len(self.classes_)))
        return question or asked_by_features(features, labels, belief.transition)

    def encode(self, y: Any) -> IntArray | BoolArray:
        """Complementary labels as class indices, or as a mask."""
        check_is_fitted(self)
        return check_labels(y, self.classes_).values
