"""Selectors, as text and as objects."""

import pytest

from localcluster import ApiError
from localcluster.store.selectors import from_object, matches, parse_fields, parse_labels


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        ("", {}, True),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("a in (x, y),b!=z", {"a": "y"}, True),
        ("a notin (x)", {}, True),
        ("example.com/a=b", {"example.com/a": "b"}, True),
        ("a=", {"a": ""}, True),
        ("a=", {}, False),
    ],
)
def test_labels(text: str, labels: dict[str, str], expected: bool) -> None:
    assert matches(parse_labels(text), labels) is expected


@pytest.mark.parametrize("text", ["a=b=c", "a b", "a=!", "(a)", "a>5"])
def test_bad_labels(text: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse_labels(text)
    assert refused.value.code == 400


def test_fields() -> None:
    selector = parse_fields(r"a=x\,y,b!=", ("a", "b"))
    assert matches(selector, {"a": "x,y", "b": "1"})
    assert not matches(selector, {"a": "x,y", "b": ""})
    with pytest.raises(ApiError):
        parse_fields("a", ("a",))


def test_objects() -> None:
    assert not matches(from_object(None), {})
    assert matches(from_object({}), {})
    expressions = [{"key": "a", "operator": "In", "values": ["x"]}, {"key": "b", "operator": "DoesNotExist"}]
    selector = from_object({"matchLabels": {"c": "d"}, "matchExpressions": expressions})
    assert matches(selector, {"a": "x", "c": "d"})
    assert not matches(selector, {"a": "x", "c": "d", "b": ""})
    assert not matches(from_object({"matchExpressions": [{"key": "a", "operator": "Odd"}]}), {"a": "x"})
