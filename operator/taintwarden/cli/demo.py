"""``taintwarden demo``: a cluster in the process, the real operator, an SLA drop, and a verdict."""

import asyncio
import signal
import sys
import tempfile
from pathlib import Path

import click
from rich.console import Console

from taintwarden.cli.demonstration.definitions import MissingDefinitionsError
from taintwarden.cli.demonstration.play import DemoFailedError, Stage, play, set_stage
from taintwarden.cli.demonstration.scenario import POLICY, Story, tell_story
from taintwarden.cli.demonstration.summary import Report, summary
from taintwarden.cli.demonstration.timeline import Nothing, Show, Timeline
from taintwarden.cli.errors import fail
from taintwarden.cli.output import output_option, write, write_data


@click.command(short_help="Show the operator at work on a cluster in this process.")
@click.option("--keep", is_flag=True, help="Leave cluster and operator running afterwards, for kubectl. Ctrl-C ends.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port of the cluster's API. Default: a free one."
)
@click.option("--pace", type=click.FloatRange(0.4, 10), default=1.0, hidden=True, help="Stretches the story in time.")
@output_option
def demo(keep: bool, port: int, pace: float, output: str) -> None:
    """Show the operator at work, in about 40 seconds and without a cluster.

    A Kubernetes API in this process holds nine nodes whose SLA is a taint, and pods that tolerate it in different ways.
    `taintwarden run` is started against it, and values fall, recover and are mistyped. What must happen is written
    down beforehand, what happened is read from the cluster.

    Exit codes: 0 what happened is what had to happen, 1 it is not or the demo could not run, 130 interrupted.
    """
    story = tell_story(pace)
    try:
        told = asyncio.run(_run(story, port, output, keep=keep))
    except (DemoFailedError, MissingDefinitionsError) as error:
        fail(str(error), code=1)
    except OSError as error:
        fail(f"cannot serve on port {port}: {error.strerror or error}", code=1)
    except (KeyboardInterrupt, asyncio.CancelledError):
        fail("interrupted", code=130)
    sys.exit(0 if told.ok else 1)


async def _run(story: Story, port: int, output: str, *, keep: bool) -> Report:
    """The run and, if asked, what comes after it. Everything that was started has ended when this returns."""
    _end_on_sigterm()
    with tempfile.TemporaryDirectory(prefix="taintwarden-demo-") as folder:
        async with set_stage(story, Path(folder), port) as stage:
            show = _show(story, output)
            with show:
                told = await play(stage, show)
            if output == "table":
                write(summary(told))
            else:
                write_data(told, output)
            if keep:
                await _keep(stage, Timeline() if output == "table" else Nothing())
            return told


def _show(story: Story, output: str) -> Show:
    console = Console()
    if output != "table":
        return Nothing()
    if not console.is_terminal or console.is_dumb_terminal:
        return Timeline()
    from taintwarden.cli.demonstration.screen import Screen  # noqa: PLC0415 - drawing is not needed elsewhere

    return Screen(console, story)


async def _keep(stage: Stage, show: Show) -> None:
    """Go on until interrupted, which is how it is meant to end; from here on only lines are told."""
    lines = (
        "\nThe cluster and the operator go on. Try, in another terminal:\n",
        f"  export KUBECONFIG={stage.kubeconfig} PATH={Path(sys.executable).parent}:$PATH",
        "  kubectl get pods -n shop -o wide",
        "  kubectl taint node b2 sla=890:NoExecute --overwrite",
        f"  taintwarden status {POLICY} --watch\n",
        "Ctrl-C ends.\n",
    )
    write("\n".join(lines))
    try:
        while True:
            await stage.tick(show)
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is not None:
            current.uncancel()


def _end_on_sigterm() -> None:
    """End in order: the operator must not outlive the demo."""
    task = asyncio.current_task()
    if task is not None and sys.platform != "win32":
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
