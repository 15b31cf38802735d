"""``python -m fourstage.command``: the same as ``fourstage``."""

import sys

from fourstage.command import main

if __name__ == "__main__":
    sys.exit(main())
