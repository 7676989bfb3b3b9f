"""How a command ends when it cannot do what it was asked: one line, and a code that scripts can use."""

import sys
from typing import NoReturn

import click


def fail(message: str, code: int) -> NoReturn:
    """Print ``message`` to standard error and exit with ``code``."""
    click.echo(f"taintwarden: {message}", err=True)
    sys.exit(code)
