"""Where a process begins: ``taintwarden``, ``kubectl taintwarden`` and ``python -m taintwarden``."""

import os
import signal
import sys


def main() -> None:
    """Run the command line.

    The operator ends at SIGTERM from here on. As process 1 of a container it would ignore the signal until there is a
    handler, and imports and the first answer of the API server take seconds. Nothing is held before ``app.run`` puts
    its own handler in place, so there is nothing to give back.
    """
    if sys.argv[1:2] == ["run"]:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    from taintwarden.cli import main as command_line  # noqa: PLC0415

    command_line()
