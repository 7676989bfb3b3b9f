"""``taintwarden top``: look, draw, and do what keys ask for, until it is interrupted."""

import asyncio
import sys
import time
from typing import TYPE_CHECKING

import click

from taintwarden.cli.options import Seconds, cluster_options, operator_option
from taintwarden.cli.output import PIPE_WIDTH, printable, write

if TYPE_CHECKING:
    from rich.console import Console

    from taintwarden.cli.top.looking import Look
    from taintwarden.cli.top.state import Wish
    from taintwarden.engine.model import Gates
    from taintwarden.rehearsal.session import Session

REDRAW_SECONDS = 0.5
SHARE = 4.0
"""A look that takes long is made less often: so many times its own time lies between two."""

_HELP = """Show the cluster live: nodes by zone with their taints, pods as marks in the colour of their verdict, which
pods have to leave and what they wait for, the guard and the limits of each policy, and the last Events.

The verdicts are those of the operator's own engine. With more nodes than rows, each zone is a row of marks, and the
worst nodes are listed. Colours are not needed to read it, and NO_COLOR switches them off.

\b
Keys:
  q        quit
  /        filter by node, zone, namespace or pod; Escape removes the filter
  j, k     select a pod that has to leave; also the arrows
  e        explain it
  n        select the next policy
  p, u     pause or resume the selected policy; asks first

--once prints one picture, and so does a pipe.

Needs the rights to list nodes, pods, namespaces, taintevictionpolicies and tolerationprofiles. With those to list
poddisruptionbudgets and events, and to get the operator's Lease, it shows more. Pausing needs the right to patch
taintevictionpolicies.

\b
Examples:
  taintwarden top
  taintwarden top --once
  kubectl taintwarden top --context production

\b
Exit codes:
  0  you ended it, or the picture is printed
  1  the cluster cannot be reached, or a right is missing
  2  wrong flags or kubeconfig
"""


@click.command(help=_HELP, short_help="Show nodes, pods, limits and Events live.")
@click.option("--once", is_flag=True, help="Print one picture.")
@click.option("--interval", type=Seconds(0.5, 3600), default=2.0, show_default=True, help="Seconds between looks.")
@operator_option
@cluster_options
def top(once: bool, interval: float, **flags: object) -> None:
    """Read the arguments, look, draw; the text of ``--help`` is above."""
    from rich.console import Console  # noqa: PLC0415

    from taintwarden.cli.cluster_session import ask, settings_of  # noqa: PLC0415
    from taintwarden.engine.model import Gates  # noqa: PLC0415

    settings = settings_of(flags)
    gates = Gates(settings.numeric_operators, settings.semver_operators)
    console = Console(highlight=False, markup=False, emoji=False)
    shown = _Top(console, settings.namespace, gates, interval)
    if once or not console.is_terminal:
        write(ask(settings, shown.once, max_connections=12))
        return
    try:
        ask(settings, shown.run, max_connections=12)
    except KeyboardInterrupt:  # a regular end
        sys.exit(0)


class _Top:
    def __init__(self, console: "Console", operator: str, gates: "Gates", interval: float) -> None:
        from taintwarden.cli.top.state import State  # noqa: PLC0415

        self._console = console
        self._operator = operator
        self._gates = gates
        self._interval = interval
        self._state: State = State()
        self._look: Look | None = None

    async def once(self, session: "Session") -> str:
        """One picture, as high as it has to be."""
        from taintwarden.cli.top.looking import look  # noqa: PLC0415

        now = time.time()
        found = await look(session, self._operator, self._gates, now)
        if not self._console.is_terminal and self._console.width > PIPE_WIDTH:
            self._console.width = PIPE_WIDTH
        with self._console.capture() as captured:
            self._console.print(self._picture(None).draw(found, self._state, now))
        return "\n".join(line.rstrip() for line in captured.get().splitlines())

    async def run(self, session: "Session") -> None:
        """Draw until a key or an interrupt ends it. A look that fails is shown, and tried again."""
        from rich.live import Live  # noqa: PLC0415

        from taintwarden.cli.top.keyboard import typed  # noqa: PLC0415
        from taintwarden.cli.top.state import Wish  # noqa: PLC0415

        await self._see(session)
        looking = asyncio.create_task(self._keep_looking(session))
        try:
            with typed() as keys, Live(console=self._console, screen=True, auto_refresh=False) as live:
                while True:
                    assert self._look is not None  # noqa: S101 - the first look is complete, or has raised
                    size = self._console.size
                    picture = self._picture(size.height)
                    live.update(picture.draw(self._look, self._state, time.time()), refresh=True)
                    try:
                        key = await asyncio.wait_for(keys.get(), REDRAW_SECONDS)
                    except TimeoutError:
                        continue
                    wish = self._state.press(key, self._look)
                    if wish is Wish.QUIT:
                        return
                    if wish is not None:
                        await self._do(session, wish)
        finally:
            looking.cancel()

    def _picture(self, height: int | None) -> "Picture":
        from taintwarden.cli.top.drawing import Picture  # noqa: PLC0415

        plain = "utf" not in (self._console.encoding or "").lower()
        return Picture(self._console.width, height, plain=plain)

    async def _keep_looking(self, session: "Session") -> None:
        from taintwarden.rehearsal.session import ClusterError  # noqa: PLC0415

        took = 0.0
        while True:
            await asyncio.sleep(max(self._interval, SHARE * took))
            began = time.monotonic()
            try:
                await self._see(session)
            except ClusterError as error:
                self._state.message = printable(str(error))
            took = time.monotonic() - began

    async def _see(self, session: "Session") -> None:
        from taintwarden.cli.top.looking import look  # noqa: PLC0415

        self._look = await look(session, self._operator, self._gates, time.time())

    async def _do(self, session: "Session", wish: "Wish") -> None:
        from taintwarden.cli.change.pausing import switch  # noqa: PLC0415
        from taintwarden.cli.top.state import Wish  # noqa: PLC0415
        from taintwarden.rehearsal.session import ClusterError  # noqa: PLC0415

        look, state = self._look, self._state
        assert look is not None  # noqa: S101 - as above
        if wish is Wish.EXPLAIN:
            pod = state.pod(look)
            try:
                state.text = await self._explain(session, pod.namespace, pod.name) if pod else ""
            except ClusterError as error:
                state.message = printable(str(error))
            return
        name, is_resumed = state.policy_name(look), wish is Wish.RESUME
        [outcome] = await switch(session, [name], resume=is_resumed, reason="in taintwarden top")
        state.message = printable(outcome.told)

    async def _explain(self, session: "Session", namespace: str, name: str) -> str:
        from taintwarden.cli.explain.explaining import explain  # noqa: PLC0415
        from taintwarden.cli.explain.explanation_table import table  # noqa: PLC0415
        from taintwarden.rehearsal.manifests import BadInput  # noqa: PLC0415
        from taintwarden.rehearsal.reading import read_around  # noqa: PLC0415

        snapshot = await read_around(session, self._operator, namespace, name, time.time())
        try:
            return table(explain(snapshot, self._gates))
        except BadInput as error:
            return str(error)


if TYPE_CHECKING:
    from taintwarden.cli.top.drawing import Picture
