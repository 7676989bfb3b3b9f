"""Entry points of ``taintwarden``, ``kubectl taintwarden`` and ``python -m taintwarden_cli``."""

import os
import signal
import sys

SERVING = {"run", "webhook", "scheduler-extender", "publisher"}


def main() -> None:
    """Run the command line.

    A process that serves exits on SIGTERM from the start. As process 1 of a container it would otherwise ignore the
    signal until it sets its own handler, seconds later. Before that it holds nothing to release.
    """
    if set(sys.argv[1:2]) & SERVING:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    from taintwarden_cli.main import main as command_line  # noqa: PLC0415

    command_line()


def complete() -> None:
    """Complete ``kubectl taintwarden``: kubectl runs ``kubectl_complete-taintwarden`` with the words so far.

    Each printed line is a word and its help. The last is a directive for kubectl: 4 forbids file names, 0 allows them.
    """
    from click.shell_completion import ShellComplete  # noqa: PLC0415

    from taintwarden_cli.main import main as command_line  # noqa: PLC0415

    *words, incomplete = sys.argv[1:] or [""]
    found = ShellComplete(command_line, {}, "kubectl taintwarden", "").get_completions(words, incomplete)
    words = [f"{item.value}\t{item.help or ''}" for item in found if item.type == "plain"]
    words.append(":4" if all(item.type == "plain" for item in found) else ":0")
    sys.stdout.write("\n".join(words) + "\n")
