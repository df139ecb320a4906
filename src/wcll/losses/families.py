"""Every family of losses, in the order of their papers; importing this module registers them all."""

# ruff: noqa: F403, I001
from wcll.losses.pairwise import *
from wcll.losses.unbiased import *
from wcll.losses.forward import *
from wcll.losses.bounded import *
from wcll.losses.surrogate import *
from wcll.losses.discriminative import *
from wcll.losses.robust import *
from wcll.losses.onevsrest import *
from wcll.losses.weighted import *
from wcll.losses.ordinary import *
