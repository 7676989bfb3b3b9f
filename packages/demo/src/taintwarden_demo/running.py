"""The process of the demo. It ends with one line if it cannot run, and stops everything in order when interrupted."""

import asyncio
import signal
import sys
import tempfile
from pathlib import Path

import click
from rich.console import Console

from taintwarden_cli.data_output import write_answer
from taintwarden_cli.output import fail
from taintwarden_demo.definitions import MissingDefinitionsError
from taintwarden_demo.play import DemoFailedError, RunningDemo, play, start_demo
from taintwarden_demo.scenario import Scenario, make_scenario
from taintwarden_demo.summary import Report, summary
from taintwarden_demo.timeline import NoOutput, Output, Timeline


def run(pace: float, port: int, output: str, *, keep: bool) -> Report:
    """Run the demo and print the result. Ends the process if the demo cannot run."""
    try:
        return asyncio.run(_run(make_scenario(pace), port, output, keep=keep))
    except (DemoFailedError, MissingDefinitionsError) as error:
        fail(str(error), code=1)
    except OSError as error:
        fail(f"cannot serve on port {port}: {error.strerror or error}", code=1)
    except (KeyboardInterrupt, asyncio.CancelledError):
        fail("interrupted", code=130)


async def _run(scenario: Scenario, port: int, output: str, *, keep: bool) -> Report:
    """Run the demo, with ``--keep`` until interrupted. All started processes have ended when this returns."""
    _end_on_sigterm()
    with tempfile.TemporaryDirectory(prefix="taintwarden-demo-") as folder:
        async with start_demo(scenario, Path(folder), port) as demo:
            show = _show(scenario, output)
            with show:
                report = await play(demo, show)
            write_answer(report, output, lambda: summary(report))
            if keep:
                await _keep(demo, Timeline() if output == "table" else NoOutput())
            return report


def _show(scenario: Scenario, output: str) -> Output:
    console = Console()
    if output != "table":
        return NoOutput()
    if not console.is_terminal or console.is_dumb_terminal:
        return Timeline()
    from taintwarden_demo.screen import Screen  # noqa: PLC0415 - not needed without a terminal

    return Screen(console, scenario)


async def _keep(demo: RunningDemo, show: Output) -> None:
    """Say how to try the cluster, on standard error; continue until interrupted, and print new lines."""
    lines = (
        "\nThe cluster and the operator continue to run. Try in another terminal:\n",
        f"  export KUBECONFIG={demo.kubeconfig} PATH={Path(sys.executable).parent}:$PATH",
        "  kubectl get pods -n shop -o wide",
        "  kubectl taint node b2 sla=890:NoExecute --overwrite",
        "  taintwarden top\n",
        "Ctrl-C ends.\n",
    )
    click.echo("\n".join(lines), err=True)
    try:
        while True:
            await demo.tick(show)
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is not None:
            current.uncancel()


def _end_on_sigterm() -> None:
    """Cancel the demo on SIGTERM, so that the operator does not continue without it."""
    task = asyncio.current_task()
    if task is not None and sys.platform != "win32":
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
