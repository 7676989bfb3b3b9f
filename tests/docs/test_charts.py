"""Panels in the picture of the dashboard: what is drawn is what was measured."""

import re
from xml.etree import ElementTree

import pytest

from pictures.charts import Chart, Series, draw_dashboard


def drawn(points, states=None):
    chart = Chart("A <panel>", [Series("one", points)], states or {})
    return draw_dashboard("Title", "Where it is from", [chart], 100.0, 200.0)


def test_a_line_goes_through_its_points():
    (places,) = re.findall(r'<polyline points="([^"]+)"', drawn([(100.0, 0.0), (150.0, 10.0), (200.0, 5.0)]))
    (x0, y0), (x1, y1), (x2, y2) = [tuple(map(float, place.split(","))) for place in places.split()]
    assert x0 < x1 < x2
    assert x1 - x0 == pytest.approx(x2 - x1)
    assert y1 < y2 < y0
    assert y0 - y2 == pytest.approx((y0 - y1) / 2)


def test_a_line_begins_at_the_least_value_of_its_panel():
    chart = Chart("A", [Series("one", [(100.0, 930.0), (200.0, 990.0)])], {}, least=930.0)
    svg = draw_dashboard("Title", "Where it is from", [chart], 100.0, 200.0)
    (places,) = re.findall(r'<polyline points="([^"]+)"', svg)
    lowest, highest = re.findall(r'y1="([\d.]+)"', svg)[::2]
    assert [place.split(",")[1] for place in places.split()] == [lowest, highest]


def test_panels_are_in_one_column_with_columns_1():
    charts = [Chart(name, [Series("one", [(100.0, 1.0)])], {}) for name in "ab"]
    svg = draw_dashboard("Title", "Where it is from", charts, 100.0, 200.0, columns=1)
    places = [tuple(map(int, one)) for one in re.findall(r"translate\((\d+) (\d+)\)", svg)]
    assert len({x for x, _ in places}) == 1
    assert len({y for _, y in places}) == 2


def test_a_state_is_a_bar_from_its_change_to_the_next():
    states = {0.0: ("armed", "green"), 1.0: ("tripped", "red")}
    svg = drawn([(100.0, 0.0), (110.0, 0.0), (120.0, 1.0), (200.0, 1.0)], states)
    bars = re.findall(r'<rect x="([\d.]+)" y="34.0" width="([\d.]+)" [^>]*fill="(#\w+)"', svg)
    assert [colour for _, _, colour in bars] == ["#56a64b", "#e02f44"]
    (_, green, _), (_, red, _) = bars
    assert float(red) == pytest.approx(4 * float(green), rel=0.01)


def test_the_picture_is_valid_and_says_where_its_data_are_from():
    root = ElementTree.fromstring(drawn([(100.0, 1.0)]))
    texts = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[:3] == ["Title", "Where it is from", "A <panel>"]
