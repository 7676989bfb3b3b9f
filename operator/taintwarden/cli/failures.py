"""How a command ends if it fails: one line, and an exit code that scripts can use."""

import sys
from typing import NoReturn

import click


def fail(message: str, code: int) -> NoReturn:
    """Print ``message`` to standard error and exit with ``code``."""
    click.echo(f"taintwarden: {message}", err=True)
    sys.exit(code)
