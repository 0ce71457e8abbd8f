"""OGPM: its claims (`claims.py`), and what the programs found beyond them (`discoveries.py`). `PAPER` is the citation."""

from optdp.audit.claim import Paper

PAPER = Paper(
    "OGPM",
    "Optimal Piecewise-based Mechanism for Collecting Bounded Numerical Data under Local Differential Privacy",
    "Ye Zheng, Sumita Mishra and Yidan Hu",
    "Proceedings on Privacy Enhancing Technologies (PoPETs)",
    2025,
    "2505.15483",
    "The audited text is the authors' slides.",
)
