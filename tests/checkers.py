"""What the two checkers say of one file: for the soaks."""

import json

from optdp import checker

AGREE, DISAGREE, BEYOND = "the two checkers agree", "the two checkers disagree", "beyond the second checker"


def compared(raw, first, limit=checker.LIMIT):
    """AGREE where both say yes or neither does, DISAGREE, or BEYOND: not known to the second one, or more work than its limit.

    **Arguments:** `raw`: the bytes of a file, or a solution; `first`: what `verify()` says; False where it reads none.
    """
    if not isinstance(raw, bytes):
        try:
            raw = json.dumps(raw.to_dict()).encode()
        except TypeError:  # known in this session alone
            return BEYOND
    status, said = checker.check(raw, limit)
    if status == 2 and ("not known here" in said or "--limit raises" in said):
        return BEYOND
    return AGREE if (status == 0) == bool(first) else DISAGREE


def summary(counts):
    """One line of what was compared; says what the soaks are to show."""
    every = "; the two checkers agree on every one of these" if not counts[DISAGREE] else ""
    return f"second checker: {counts[AGREE]} agreements, {counts[DISAGREE]} disagreements, {counts[BEYOND]} beyond it{every}"
