"""Published claims and discoveries, decided by program: a package for each paper, `optdp.audit()` for all of them."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Audit(ModuleType):
    """This package is also the public function `optdp.audit`: importing the one must not hide the other."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from optdp.audit.audit import audit

        return audit(*args, **kwargs)


sys.modules[__name__].__class__ = _Audit
