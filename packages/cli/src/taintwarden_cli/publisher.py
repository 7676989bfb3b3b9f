"""``taintwarden publisher``, which is a separate package: the operator's image needs neither it nor its libraries."""

import click

from taintwarden_cli.output import fail

PACKAGE = "taintwarden_publisher"


@click.command(
    "publisher",
    short_help="Publish values of Prometheus as taints of nodes.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("words", nargs=-1, metavar="")
def missing(words: tuple[str, ...]) -> None:
    """Publish values of Prometheus as taints of nodes.

    This is not installed: `pip install 'taintwarden[publisher]'` brings it, and it has an image of its own.
    """
    fail("the publisher is not installed: pip install 'taintwarden[publisher]', or use its own image", code=1)


try:
    from taintwarden_publisher.command import publisher
except ModuleNotFoundError as error:
    if error.name != PACKAGE:
        raise
    publisher = missing

__all__ = ["publisher"]
