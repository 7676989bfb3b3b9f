"""The loop that feeds events to the machine, its orders to the effector, and its notices to the notifier."""

import asyncio
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from taintwarden.controller.clock import Clock
from taintwarden.engine import commands, events
from taintwarden.engine.derived import with_derived
from taintwarden.engine.events import Event
from taintwarden.engine.machine import Machine

LONGEST_SLEEP_SECONDS = 60.0
"""Maximum sleep of the loop. Sleeps use the monotonic clock, so the wall clock has to be read again after steps."""


class Loop:
    """Owns the machine. Single-threaded: ``feed`` may be called from anywhere in the event loop.

    Args:
        machine: makes the decisions.
        clock: reads wall time and monotonic time.
        carry_out: starts the call of an order.
        report: logs the notices of a step and records their Events.

    """

    def __init__(
        self,
        machine: Machine,
        clock: Clock,
        carry_out: Callable[[commands.Order], None],
        report: Callable[[Sequence[commands.Notice]], None],
    ) -> None:
        self.machine = machine
        self.newest_version = -1
        """Newest resourceVersion of delivered pods, or of their last list. A read that starts now is as new."""
        self.changes = 0
        """Number of events that may have changed a status."""
        self._clock = clock
        self._carry_out = carry_out
        self._report = report
        self._touched = asyncio.Event()

    def feed(self, event: Event) -> None:
        """Step the machine with one event."""
        if isinstance(event, events.PodSeen):
            self.newest_version = max(self.newest_version, event.pod.resource_version)
        elif isinstance(event, events.PodsSeen):
            self.newest_version = max([self.newest_version, *(pod.resource_version for pod in event.pods)])
        elif isinstance(event, events.PodsListed):  # a complete list, whose version may be lower than any before
            self.newest_version = event.resource_version
        self.changes += not self._is_heartbeat(event)
        self._step(event)
        self._touched.set()

    def _is_heartbeat(self, event: Event) -> bool:
        """Return True if only the resourceVersion is new, as in most events of nodes."""
        if not isinstance(event, events.NodeSeen):
            return isinstance(event, events.NodesReached)
        known, node = self.machine.view.node(event.node.name), event.node
        return (
            known is not None and with_derived(replace(known.node, resource_version=node.resource_version), {}) == node
        )

    async def run(self) -> None:
        """Run the machine at each time that it requests, forever."""
        while True:
            self._touched.clear()
            delay = self.machine.wake_after(self._clock())
            if delay != 0 and not await self._sleep(min(delay or LONGEST_SLEEP_SECONDS, LONGEST_SLEEP_SECONDS)):
                continue
            self._step(events.Tick())
            await asyncio.sleep(0)  # let other tasks run between slices

    async def _sleep(self, seconds: float) -> bool:
        """Sleep until the time is over or an event arrives. Return True if the time is over.

        Each event ends a sleep, so this uses a plain timer: ``asyncio.timeout`` costs more.
        """
        is_over = False

        def wake() -> None:
            nonlocal is_over
            is_over = True
            self._touched.set()

        timer = asyncio.get_running_loop().call_later(seconds, wake)
        try:
            await self._touched.wait()
        finally:
            timer.cancel()
        return is_over

    def _step(self, event: Event) -> None:
        notices: list[commands.Notice] = []
        for command in self.machine.step(event, self._clock()):
            if isinstance(command, commands.Order):
                self._carry_out(command)
            else:
                notices.append(command)
        if notices:
            self._report(notices)
