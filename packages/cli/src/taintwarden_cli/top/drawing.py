"""The picture of ``top``: a function of what was seen, what is selected, the time, and the size of the terminal."""

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from rich.console import Group, OverflowMethod, RenderableType
from rich.table import Table
from rich.text import Text

from taintwarden.controller.decoding.times import moment
from taintwarden.controller.words.wording import ago, duration, node_end, pods, several, zone_health
from taintwarden.engine.model import Mode
from taintwarden.engine.rfc3339 import at
from taintwarden_cli.output import printable
from taintwarden_cli.relative_times import Times
from taintwarden_cli.status.policy_status import ARMED, ZONES_FULL
from taintwarden_cli.top.looking import Look, NodeLook, PodLook, PodMark, PolicyLook
from taintwarden_cli.top.state import HELP, State

LEGEND = {
    PodMark.STAYS: ("green", "●", "o", "stays"),
    PodMark.LEAVING: ("bright_black", "○", "-", "leaving"),
    PodMark.INVALID: ("cyan", "◇", "?", "invalid value"),
    PodMark.WOULD_LEAVE: ("blue", "◌", "~", "would leave"),
    PodMark.SCHEDULED: ("yellow", "◐", "!", "has a deadline"),
    PodMark.BLOCKED: ("magenta", "■", "#", "budget"),
    PodMark.OVERDUE: ("bold red", "▲", "^", "overdue"),
}
"""Colour, shape, shape of a terminal without Unicode, meaning. The shapes differ for those who see no colours."""
GAUGE_WIDTH = 10
LEAVING_ROWS, EVENT_ROWS, PROBLEM_ROWS = 6, 5, 4
PRINTED_ROWS = 40
"""Pods that have to leave, in a picture that is printed."""
FEWEST_NODE_ROWS = 4
WIDEST = 200


class Picture:
    """Draws. ``plain``: the terminal has no Unicode."""

    def __init__(self, width: int, height: int | None, *, plain: bool = False) -> None:
        self.width = min(width, WIDEST)
        self._height = height
        self._plain = plain

    def draw(self, look: Look, state: State, now: float) -> RenderableType:
        """The whole picture, at most as high as the terminal."""
        policies = [line for one in look.policies for line in self._policy(one, now)]
        leaving = self._leaving(state.leaving(look), state, now) if not state.text else []
        events = self._events(look, now)
        head, foot = self._head(look, state, now), self._foot(look, state)
        fixed = sum(map(len, (head, policies, leaving, events, foot))) + 1
        rows = None if self._height is None else max(self._height - fixed - 2, FEWEST_NODE_ROWS)
        middle = self._text(state.text, rows) if state.text else self._nodes(state.nodes(look), rows)
        lines = [*head, *policies, Text(""), *middle, *leaving, *events, *foot]
        return Group(*(lines if self._height is None else lines[: self._height - 1]))

    # -- parts -------------------------------------------------------------------------------------------------------

    def _line(self, *parts: str | tuple[str, str]) -> Text:
        text = Text(no_wrap=True, overflow="ellipsis")
        for part in parts:
            told, style = (part, "") if isinstance(part, str) else part
            text.append(printable(told), style=style)
        if self._plain and len(text) > self.width:
            text.truncate(self.width - 3, overflow="crop")
            return text.append("...")
        text.truncate(self.width, overflow="ellipsis")
        return text

    def _head(self, look: Look, state: State, now: float) -> list[Text]:
        if state.unseen:
            return [self._line((f"As of {ago(look.at, now)}: {state.unseen}", "bold red"))]
        if look.problem:
            told = f"{look.problem[0].upper()}{look.problem[1:]}"
            return [self._line((told, "bold red"))]
        reported = f"reported {ago(look.reported_at, now)}" if look.reported_at else "no report yet"
        fates = [pod.fate for pod in look.pods()]
        overdue = fates.count(PodMark.OVERDUE) + fates.count(PodMark.BLOCKED)
        counts = f"{several(len(look.nodes), 'node')}, {pods(len(fates))}"
        due = f"{overdue} overdue" if overdue else "none overdue"
        style = "bold red" if overdue else "green"
        return [
            self._line(("Taintwarden", "bold"), f"  {counts}  ", (due, style), (f"  {reported}  {look.cluster}", "dim"))
        ]

    def _policy(self, one: PolicyLook, now: float) -> Iterator[Text]:
        summary, status = one.summary, one.summary.status
        mode = (summary.mode, "" if summary.mode == Mode.ENFORCE else "yellow")
        counts = f"  {status.pending} pending  {status.blocked} blocked  {status.evicted} evicted  "
        yield self._line("  ", (summary.name, "bold"), "  ", mode, counts, *self._guard(one))
        if summary.problem:
            problem = printable(Times(at(now)).within(summary.problem))
            for line in wrap(problem, self.width - 4, max_lines=PROBLEM_ROWS, placeholder=" ..."):
                yield self._line("    ", (line, "bold red"))
        if summary.paused_by:
            yield self._line("    ", (f"paused by {summary.paused_by}", "yellow"))
        for limit in status.limits:
            until = f", next {_until(limit.until, now)}" if limit.until else ""
            gauge = self._gauge(limit.pods, status.pending)
            yield self._line("    ", gauge, f" {limit.limit} holds {limit.pods} of {status.pending}{until}")
        for end in (one for one in status.reclaims if not summary.problem):
            yield self._line("    ", (Times(at(now)).within(node_end(end, now)), "yellow"))
        for zone in (one for one in status.zones if one.state != "Normal"):
            style = "bold red" if zone.state == "Full" else "yellow"
            told = zone_health(zone.nodes, zone.unhealthy_nodes, zone.state)
            yield self._line("    ", (f"zone {zone.zone or '(no zone)'}: {told}", style))

    def _guard(self, one: PolicyLook) -> list[str | tuple[str, str]]:
        guard = one.summary.guard
        if guard is None:
            return [("no guard", "dim")]
        state = (
            "every zone Full" if guard == ZONES_FULL else f"guard {guard}",
            "green" if guard == ARMED else "bold red",
        )
        if one.guard_counts is None or one.guard_allows is None:
            return [state]
        return [state, " ", self._gauge(one.guard_counts, one.guard_allows), f" {one.guard_counts}/{one.guard_allows}"]

    def _gauge(self, number: int, whole: int) -> tuple[str, str]:
        share = min(number / whole, 1.0) if whole else float(bool(number))
        filled = round(share * GAUGE_WIDTH) or int(number > 0)
        full, empty = ("#", ".") if self._plain else ("█", "░")
        style = "red" if number > whole else "yellow" if share > 0.5 else "green"
        return full * filled + empty * (GAUGE_WIDTH - filled), style

    def _nodes(self, nodes: Sequence[NodeLook], rows: int | None) -> list[RenderableType]:
        """A row for each node if there are enough, else a row for each zone and the worst nodes."""
        if not nodes:
            return [self._line(("no node is selected", "dim"))]
        if rows is None or len(nodes) + 2 <= rows:
            return [self._table(sorted(nodes, key=lambda node: (node.zone, node.name))), self._legend(nodes)]
        zones = self._zones(nodes)
        left = max(rows - len(zones) - 3, 1)
        worst = sorted(nodes, key=lambda node: (-node.worst, -len(node.pods), node.name))[:left]
        more = len(nodes) - len(worst)
        rest = self._line((f"... and {more} more nodes, none of them worse: / filters", "dim"))
        return [*zones, self._table(worst), rest, self._legend(nodes)]

    def _zones(self, nodes: Sequence[NodeLook]) -> list[Text]:
        """One mark for each node, in the colour of its worst pod."""
        by_zone: dict[str, list[NodeLook]] = {}
        for node in nodes:
            by_zone.setdefault(node.zone or "(no zone)", []).append(node)
        width = max(map(len, by_zone))
        found = []
        for zone, members in sorted(by_zone.items()):
            members.sort(key=lambda node: (-node.worst, node.name))
            marks = self._marks([node.worst for node in members], self.width - width - 10)
            found.append(self._line(f"{zone:<{width}} {len(members):>5}  ", *marks))
        return found

    def _table(self, nodes: Iterable[NodeLook]) -> Table:
        table = Table(box=None, pad_edge=False, header_style="dim", width=self.width, padding=(0, 1, 0, 0))
        most = {"ZONE": 14, "NODE": max(self.width // 4, 12), "TAINTS": max(self.width // 3, 16)}
        overflow: OverflowMethod = "crop" if self._plain else "ellipsis"
        for head in (*most, "PODS"):
            ratio = None if head in most else 1
            table.add_column(head, no_wrap=True, overflow=overflow, max_width=most.get(head), ratio=ratio)
        for node in nodes:
            style = LEGEND[node.worst][0] if node.worst else ""
            name = Text(printable(node.name), style=style)
            if node.opts_out:
                name.append(" opted out", style="cyan")
            table.add_row(printable(node.zone), name, self._taints(node), self._pods(node))
        return table

    def _taints(self, node: NodeLook) -> Text:
        text = Text()
        for taint in sorted(node.taints, key=lambda one: (not one.acts, -one.worst, one.key)):
            if text:
                text.append(" ")
            style = LEGEND[taint.worst][0] if taint.acts else "dim"
            told = f"{taint.key}={taint.value}" if taint.value else taint.key
            if taint.device:  # keys of devices begin with the domain of their driver, and there is no place for it
                told = f"{told.rpartition('/')[2]}@{taint.device}"
            text.append(printable(told), style=style)
            if taint.worst and taint.before is not None:
                text.append(printable(f" ({taint.before} before)"), style="dim")
        return text

    def _pods(self, node: NodeLook) -> Text:
        text = Text().append(f"{len(node.pods):>3} ", style="dim")
        for told, style in self._marks(sorted((pod.fate for pod in node.pods), reverse=True), self.width // 3):
            text.append(told, style=style)
        return text

    def _marks(self, fates: Sequence[PodMark], most: int) -> list[tuple[str, str]]:
        """A mark for each, the worst first; those that do not fit are counted."""
        shown = list(fates) if len(fates) <= most else list(fates)[: max(most - 6, 1)]
        found = [(self._shape(fate), LEGEND[fate][0]) for fate in shown]
        return [*found, (f" +{len(fates) - len(shown)}", "dim")] if len(shown) < len(fates) else found

    def _shape(self, fate: PodMark) -> str:
        return LEGEND[fate][2 if self._plain else 1]

    def _legend(self, nodes: Sequence[NodeLook]) -> Text:
        present = {PodMark.STAYS} | {pod.fate for node in nodes for pod in node.pods}
        parts: list[str | tuple[str, str]] = []
        for fate in sorted(present):
            parts += [(f"{self._shape(fate)} ", LEGEND[fate][0]), (f"{LEGEND[fate][3]}  ", "dim")]
        return self._line(*parts)

    def _leaving(self, leaving: Sequence[PodLook], state: State, now: float) -> list[Text]:
        if not leaving:
            return [Text(""), self._line(("no pod has to leave", "dim"))]
        rows = PRINTED_ROWS if self._height is None else LEAVING_ROWS
        selected = min(state.selected, len(leaving) - 1)
        first = max(0, min(selected - rows // 2, len(leaving) - rows))
        shown = leaving[first : first + rows]
        width = max(len("MUST LEAVE"), *(len(str(pod)) for pod in shown))
        width = min(width, max(self.width // 2 - 10, 16))
        node = min(max(4, *(len(pod.node) for pod in shown)), max(self.width // 5, 8))
        head = f"  {'MUST LEAVE':<{width}}  {'NODE':<{node}}  {'WHEN':<12} WAITS FOR"
        found = [Text(""), self._line((head, "dim"))]
        for number, pod in enumerate(shown, first):
            mark = (">" if self._plain else "▸") if number == selected and self._height is not None else " "
            when = _when(pod, now)
            told = f"{self._cut(str(pod), width):<{width}}  {self._cut(pod.node, node):<{node}}  "
            waits = pod.holds or "its deadline"
            found.append(self._line(f"{mark} ", (told, LEGEND[pod.fate][0]), f"{when:<12} {waits}"))
        if len(leaving) > rows:
            move = "" if self._height is None else ": j and k move"
            found.append(self._line((f"  ... {len(leaving)} in all{move}", "dim")))
        return found

    def _events(self, look: Look, now: float) -> list[Text]:
        shown = look.events[-EVENT_ROWS:]
        if not shown:
            return []
        found = [Text("")]
        for event in shown:
            about = f"{event.namespace}/{event.name}" if event.namespace else event.name
            style = "yellow" if event.type == "Warning" else ""
            ago = (f"{_ago(event.at, now):>7} ", "dim")
            found.append(self._line(ago, (event.reason, style), f" {about}: {event.note}"))
        return found

    def _foot(self, look: Look, state: State) -> list[Text]:
        found = [self._line((f"not read: {one}", "yellow")) for one in look.unread]
        if self._height is None:
            return found
        if state.typing:
            found.append(self._line(("filter: ", "bold"), f"{state.filter}_"))
        elif state.message:
            found.append(self._line((state.message, "bold")))
        else:
            filtered = f"filter: {state.filter}  " if state.filter else ""
            found.append(self._line((filtered, "bold"), (HELP, "dim")))
        return found

    def _cut(self, text: str, width: int) -> str:
        mark = "..." if self._plain else "…"
        return text if len(text) <= width else text[: width - len(mark)] + mark

    def _text(self, text: str, rows: int | None) -> list[Text]:
        """An explanation. Lines that do not fit are left out, with a mark."""
        lines = text.splitlines()
        fit = len(lines) if rows is None else rows
        shown = [Text.from_ansi(line) for line in lines[:fit]]
        return [*shown, self._line(("...", "dim"))] if len(lines) > fit else shown


def _when(pod: PodLook, now: float) -> str:
    left = round((pod.due_at or 0.0) - now)
    return "now" if not left else f"in {duration(left)}" if left > 0 else f"for {duration(-left)}"


def _until(at: str, now: float) -> str:
    left = _moment(at) - now
    return f"in {duration(left)}" if left >= 1 else "now"


def _ago(at: str, now: float) -> str:
    return f"{duration(max(now - _moment(at), 0))}"


def _moment(at: str) -> float:
    try:
        return moment(at)
    except ValueError:
        return 0.0
