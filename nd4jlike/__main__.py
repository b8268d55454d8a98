"""``python -m nd4jlike`` is the command ``nd4jlike``."""

import sys

from nd4jlike.cli import main

if __name__ == "__main__":
    sys.exit(main())
