"""Every loss as a function of logits and labels: ``wcll.functional.wcll(logits, ybar, weight=...)``.

Names are those of the registry with underscores: ``wcll.functional.l_uw`` is the loss ``"l-uw"``. Each function takes
logits of shape (..., n, k) and labels as class indices or as a mask, checks them, and returns one loss per run.
"""

from wcll.losses.families import *  # noqa: F403
