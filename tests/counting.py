"""Work that is counted by what is called: a busy machine changes nothing."""

import fractions
import sys


def counted(function, file=None):
    """(how often Python functions are called in `function()`, all or those of a file, what it returns)."""
    count = 0

    def look(frame, event, _):
        nonlocal count
        count += event == "call" and file in (None, frame.f_code.co_filename)

    sys.setprofile(look)
    try:
        found = function()
    finally:
        sys.setprofile(None)
    return count, found


def of_fractions(function):
    """The same of calls in `fractions` alone."""
    return counted(function, fractions.__file__)
