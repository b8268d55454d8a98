"""``python -m nd4jlike`` is the command ``nd4jlike``."""

import sys

from nd4jlike.cli import main

sys.exit(main())
