"""Every loss as a function of logits and labels: ``wcll.functional.wcll(logits, ybar, weight=...)``.

Names are those of the registry with underscores: ``wcll.functional.l_uw`` is the loss ``"l-uw"``. Each function takes
logits of shape (..., n, k) and labels as class indices or as a mask, checks them, and returns one loss per run. All of
them compile to one graph (``torch.compile(loss, fullgraph=True)``); how labels are checked there, and on a GPU, is said
at :class:`wcll.losses.Targets`, which check them once.
"""

from wcll.losses.discriminative import l_uw, l_w, op, op_w
from wcll.losses.forward import forward
from wcll.losses.ordinary import cross_entropy, logit_adjusted
from wcll.losses.robust import ml_cll, ncll, scarce
from wcll.losses.surrogates import exp, gce, log, mae, mse, phuber, scl_exp, scl_nl
from wcll.losses.unbiased import free, ga, nn, pc
from wcll.losses.weighted import wcll, wcll_adaptive, wcll_penalty

__all__ = ["cross_entropy", "exp", "forward", "free", "ga", "gce", "l_uw", "l_w", "log", "logit_adjusted", "mae"]
__all__ += ["ml_cll", "mse", "ncll", "nn", "op", "op_w", "pc", "phuber", "scarce", "scl_exp", "scl_nl", "wcll"]
__all__ += ["wcll_adaptive", "wcll_penalty"]
