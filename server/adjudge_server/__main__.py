"""``python -m adjudge_server`` is ``adjudge``."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
