"""`python -m optdp`."""

import sys

from optdp.cli import main

sys.exit(main())
