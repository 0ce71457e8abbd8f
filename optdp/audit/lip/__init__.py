"""LIP: its claims (`claims.py`), and what the programs found beyond them (`discoveries.py`). `PAPER` is the citation."""

from optdp.audit.claim import Paper

PAPER = Paper(
    "LIP",
    "Context-aware Data Aggregation with Localized Information Privacy",
    "Bo Jiang, Ming Li and Ravi Tandon",
    "IEEE Conference on Communications and Network Security (CNS)",
    2018,
    "1804.02149",
    "The audited text is the preprint.",
)
