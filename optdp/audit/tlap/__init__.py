"""TLAP: its claims (`claims.py`) and what the programs found beyond them. `PAPER` is the citation."""

from optdp.audit.claim import Paper

PAPER = Paper(
    "TLAP",
    "Privacy and Utility Tradeoff in Approximate Differential Privacy",
    "Quan Geng, Wei Ding, Ruiqi Guo and Sanjiv Kumar",
    "arXiv preprint",
    2018,
    "1810.00877",
    'Published as "Tight Analysis of Privacy and Utility Tradeoff in Approximate Differential Privacy" in AISTATS 2020, PMLR '
    "108:89-99. The audited text is the preprint's second version.",
)
