"""Exact numbers and what is proven with them: rationals and balls, integer sampling, checked fields. What other rooms use."""

from optdp.exact.check import Check, Verification
from optdp.exact.fields import OPTIONAL, UNSAVED, FieldError, Fields, Tagged, Within, written
from optdp.exact.numbers import Log, Number, exp_of, number, plain, prose, show
from optdp.exact.sampling import Alias, Geometric, Seed, as_rng, coin, either, in_blocks

__all__ = [
    "OPTIONAL", "UNSAVED", "Alias", "Check", "FieldError", "Fields", "Geometric", "Log", "Number", "Seed", "Tagged",
    "Verification", "Within", "as_rng", "coin", "either", "exp_of", "in_blocks", "number", "plain", "prose", "show", "written",
]  # fmt: skip
