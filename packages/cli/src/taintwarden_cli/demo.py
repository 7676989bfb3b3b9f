"""``taintwarden demo``, which is a separate package: images and clusters need neither it nor its API server."""

import click

from taintwarden_cli.output import fail

PACKAGE = "taintwarden_demo"


@click.command(
    "demo",
    short_help="Show the operator at work on a cluster in this process.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("words", nargs=-1, metavar="")
def missing(words: tuple[str, ...]) -> None:
    """Show the operator at work on a cluster in this process.

    This is not installed: `pip install 'taintwarden[demo]'` brings it, and `make demo` in a clone.
    """
    fail("the demo is not installed: pip install 'taintwarden[demo]', or make demo in a clone", code=1)


try:
    from taintwarden_demo.command import demo
except ModuleNotFoundError as error:
    if error.name != PACKAGE:
        raise
    demo = missing

__all__ = ["demo"]
