"""`python -m evenkeel`: the command line, from the same wheel."""

from __future__ import annotations

import signal
import sys

from . import _core


def main() -> int:
    """Runs the command line and gives its exit code."""
    # the interpreter would only take note of Ctrl-C once the command has ended
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.run_command(["evenkeel", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
