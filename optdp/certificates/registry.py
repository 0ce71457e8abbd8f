"""Certificates from files: which class reads which type."""

from __future__ import annotations

import importlib
from typing import Any

from optdp.exact import require

_HOME = {
    "staircase": ("optdp.certificates.staircase", "StaircaseCertificate"),
    "additive": ("optdp.certificates.additive", "AdditiveCertificate"),
    "bathtub": ("optdp.certificates.bathtub", "BathtubCertificate"),
    "bump": ("optdp.certificates.affine_window", "BumpCertificate"),
    "finite": ("optdp.certificates.finite", "FiniteCertificate"),
    "kernel": ("optdp.certificates.kernel", "KernelCertificate"),
    "constant": ("optdp.certificates.constant", "ConstantCertificate"),
    "lip": ("optdp.certificates.lip", "LIPCertificate"),
}


def certificate_from_dict(data: dict[str, Any]) -> Any:
    """The inverse of every certificate's `to_dict`. **Raises** ValueError for an unknown type."""
    module, name = _HOME[require.choice("certificate type", data.get("type"), tuple(_HOME))]
    return getattr(importlib.import_module(module), name).from_dict(data)
