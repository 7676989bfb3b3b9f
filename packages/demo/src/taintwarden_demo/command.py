"""The command ``taintwarden demo``. It imports the demo only when it runs, so that its help appears at once."""

import sys

import click

from taintwarden_cli.output import output_option


@click.command(short_help="Show the operator at work on a cluster in this process.")
@click.option("--keep", is_flag=True, help="Leave cluster and operator running afterwards, for kubectl. Ctrl-C ends.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port of the cluster's API. Default: a free one."
)
@click.option("--pace", type=click.FloatRange(0.3, 10), default=1.0, hidden=True, help="Stretches the run in time.")
@output_option
def demo(keep: bool, port: int, pace: float, output: str) -> None:
    """Show the operator at work, in about 40 seconds and without a cluster.

    A Kubernetes API in this process holds nine nodes whose SLA is a taint, and pods that tolerate it in different ways.
    `taintwarden run` is started against it, and values fall, recover and are mistyped. What must happen is written
    down beforehand, what happened is read from the cluster.

    Exit codes: 0 everything happened as expected, 1 it did not or the demo could not run, 130 interrupted.
    """
    from taintwarden_demo.running import run  # noqa: PLC0415

    sys.exit(0 if run(pace, port, output, keep=keep).ok else 1)
