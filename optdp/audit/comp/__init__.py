"""COMP: its claims (`claims.py`), and what the programs found beyond them (`discoveries.py`). `PAPER` is the citation."""

from optdp.audit.claim import Paper

PAPER = Paper(
    "COMP",
    "Bounded and Unbiased Composite Differential Privacy",
    "Kai Zhang, Yanjun Zhang, Ruoxi Sun, Pei-Wei Tsai, Muneeb Ul Hassan, Xin Yuan, Minhui Xue and Jinjun Chen",
    "IEEE Symposium on Security and Privacy (S&P)",
    2024,
    "2311.02324",
    "The audited text is the preprint, its formulas completed from the code released with it.",
)
