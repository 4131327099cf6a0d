"""``python -m skillhorizon`` is the command ``skillhorizon``."""

import sys

from skillhorizon.cli import main

if __name__ == "__main__":
    sys.exit(main())
