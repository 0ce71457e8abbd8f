"""`python -m optdp.cli`."""

import sys

from optdp.cli import main

sys.exit(main())
