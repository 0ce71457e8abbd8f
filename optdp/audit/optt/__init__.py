"""OPTT: its claims (`claims.py`), and what the programs found beyond them (`discoveries.py`). `PAPER` is the citation."""

from optdp.audit.claim import Paper

PAPER = Paper(
    "OPTT",
    "OPTT: Optimal Piecewise Transformation Technique for Analyzing Numerical Data under Local Differential Privacy",
    "Fei Ma, Renbo Zhu and Ping Wang",
    "arXiv preprint",
    2021,
    "2112.04745",
    "",
)
