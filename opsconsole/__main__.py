"""`python -m opsconsole` is `opsconsole`."""

import sys

from opsconsole.cli import main

sys.exit(main())
