"""Panels of the dashboard as SVG: lines over time and bars of states, arranged as in Grafana."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 560, 190
"""Size of one panel in pixels."""
COLUMNS = 2
HEAD, LEFT, RIGHT, BOTTOM = 34, 46, 12, 40
GAP, TOP = 10, 44
COLOURS = ("#73bf69", "#f2cc0c", "#5794f2", "#ff780a", "#b877d9", "#e02f44", "#8ab8ff", "#96d98d")
NAMED = {"green": "#56a64b", "orange": "#ff780a", "red": "#e02f44"}
_FONT = "system-ui, sans-serif"
Points = Sequence[tuple[float, float]]
"""Time in seconds since 1970, and value."""


@dataclass(frozen=True)
class Series:
    """Name and points of one line or bar."""

    name: str
    points: Points


@dataclass(frozen=True)
class Chart:
    """One panel. ``states``: value -> text and colour; empty if the panel shows lines."""

    title: str
    series: Sequence[Series]
    states: dict[float, tuple[str, str]]
    least: float = 0.0
    """Value at the bottom of a panel with lines."""


def draw_dashboard(
    title: str, note: str, charts: Sequence[Chart], begin: float, end: float, columns: int = COLUMNS
) -> str:
    """Return all panels from ``begin`` to ``end`` as SVG. ``note`` names the source of the data."""
    rows = (len(charts) + columns - 1) // columns
    width = columns * (WIDTH + GAP) + GAP
    height = TOP + rows * (HEIGHT + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="{_FONT}">',
        f'<rect width="{width}" height="{height}" fill="#111217"/>',
        _text(GAP, 20, title, size=15, colour="#ffffff"),
        _text(GAP, 36, note, size=11, colour="#9fa7b3"),
    ]
    for number, chart in enumerate(charts):
        x = GAP + number % columns * (WIDTH + GAP)
        y = TOP + number // columns * (HEIGHT + GAP)
        parts.append(f'<g transform="translate({x} {y})">')
        parts.append(f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#181b1f" stroke="#2c3235"/>')
        parts.append(_text(10, 20, chart.title, size=12, colour="#d8d9da"))
        parts += _states(chart, begin, end) if chart.states else _lines(chart, begin, end)
        parts += _times(begin, end)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>", ""])


def _lines(chart: Chart, begin: float, end: float) -> Iterable[str]:
    least = chart.least
    most = max([least + 1.0, *(value for one in chart.series for _, value in one.points)])
    floor = HEIGHT - BOTTOM
    for share in (0.0, 0.5, 1.0):
        y = floor - share * (floor - HEAD)
        yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#2c3235"/>'
        yield _text(LEFT - 6, y + 4, f"{least + share * (most - least):.3g}", size=10, colour="#9fa7b3", anchor="end")
    x = float(LEFT)
    for number, one in enumerate(chart.series):
        colour = COLOURS[number % len(COLOURS)]
        places = [
            f"{_x_of(at, begin, end):.1f},{floor - (value - least) / (most - least) * (floor - HEAD):.1f}"
            for at, value in one.points
        ]
        yield f'<polyline points="{" ".join(places)}" fill="none" stroke="{colour}" stroke-width="1.6"/>'
        yield f'<rect x="{x:.0f}" y="{HEIGHT - 16}" width="10" height="3" fill="{colour}"/>'
        yield _text(x + 14, HEIGHT - 11, one.name, size=10, colour="#d8d9da")
        x += 24 + 6.2 * len(one.name)


def _states(chart: Chart, begin: float, end: float) -> Iterable[str]:
    """Yield a bar with its name for each series. The value of a point holds until the next one."""
    height = min(26.0, (HEIGHT - BOTTOM - HEAD) / max(len(chart.series), 1) - 4)
    for number, one in enumerate(chart.series):
        y = HEAD + number * (height + 4)
        for at, until, value in _stretches(one.points, end):
            left, right = _x_of(at, begin, end), _x_of(until, begin, end)
            colour = NAMED[chart.states[value][1]]
            yield f'<rect x="{left:.1f}" y="{y:.1f}" width="{right - left:.1f}" height="{height:.1f}" fill="{colour}"/>'
        yield _text(LEFT + 6, y + height / 2 + 4, one.name, size=10, colour="#ffffff")
    x = float(LEFT)
    for text, colour in chart.states.values():
        yield f'<rect x="{x:.0f}" y="{HEIGHT - 19}" width="10" height="10" fill="{NAMED[colour]}"/>'
        yield _text(x + 14, HEIGHT - 10, text, size=10, colour="#d8d9da")
        x += 28 + 6.2 * len(text)


def _stretches(points: Points, end: float) -> Iterable[tuple[float, float, float]]:
    """Yield begin, end and value of each period with a constant value."""
    changes = [(at, value) for number, (at, value) in enumerate(points) if not number or points[number - 1][1] != value]
    for (at, value), (until, _) in zip(changes, [*changes[1:], (end, 0.0)], strict=True):
        yield at, until, value


def _times(begin: float, end: float) -> Iterable[str]:
    for share in (0.0, 0.5, 1.0):
        at = begin + share * (end - begin)
        text = f"{at - begin:.0f} s"
        yield _text(_x_of(at, begin, end), HEIGHT - BOTTOM + 15, text, size=10, colour="#9fa7b3", anchor="middle")


def _x_of(at: float, begin: float, end: float) -> float:
    return LEFT + (min(max(at, begin), end) - begin) / (end - begin) * (WIDTH - RIGHT - LEFT)


def _text(x: float, y: float, text: str, *, size: int, colour: str, anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}"'
    return f"<text {place}>{escape(text)}</text>"
