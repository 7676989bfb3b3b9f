import io
import json
import sys
from pathlib import Path

import pytest

from taintwarden_cli.rehearsal.manifests import BadInput, read_documents


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Read a file with this content; faults name it `f`."""
    monkeypatch.chdir(tmp_path)

    def reader(content: str | bytes):
        Path("f").write_bytes(content.encode() if isinstance(content, str) else content)
        return read_documents("f")

    return reader


def test_documents_know_their_place(read):
    found = read("kind: A\n---\n# only a comment\n---\nkind: B\nmetadata: {name: b}\n")
    assert [(one.kind, one.name, one.number, one.line) for one in found] == [("A", "(no name)", 1, 1), ("B", "b", 3, 5)]
    assert found[1].location == "f:5: document 3"


def test_json_is_read(read):
    assert read('\n{"kind": "A",\t"apiVersion": "apps/v1"}')[0].group == "apps"


def test_several_json_documents_are_read_as_yaml(read):
    assert [one.kind for one in read('{"kind": "A"}\n---\n{"kind": "B"}')] == ["A", "B"]


def test_list_is_unfolded(read):
    found = read("kind: List\nitems:\n- {kind: A}\n- {kind: B}\n")
    assert [(one.kind, one.location) for one in found] == [
        ("A", "f:1: document 1 item 0"),
        ("B", "f:1: document 1 item 1"),
    ]


def test_items_of_a_typed_list_inherit_its_kind(read):
    (found,) = read(json.dumps({"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {"name": "a"}}]}))
    assert (found.kind, found.content["apiVersion"], found.name) == ("Pod", "v1", "a")


def test_item_that_is_no_object_is_kept_without_a_kind(read):
    assert [one.kind for one in read("kind: List\nitems: [1, {kind: A}]")] == ["", "A"]


def test_kind_that_only_ends_in_list_is_an_object(read):
    assert read("kind: AllowList\nmetadata: {name: a}")[0].kind == "AllowList"


@pytest.mark.parametrize("content", ["", "---\n---\n", "# nothing\n", "null\n"])
def test_empty_documents_do_not_count(read, content):
    assert read(content) == []


def test_times_stay_text(read):
    assert read("kind: A\nat: 2026-01-31T12:00:00Z")[0].content["at"] == "2026-01-31T12:00:00Z"


def test_byte_order_mark_is_no_part_of_the_text(read):
    assert read("\ufeffkind: A")[0].kind == "A"


def test_generated_name_stands_in_for_a_name(read):
    assert read("metadata: {generateName: web-}")[0].name == "web-"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: [", "f:2: is not YAML: did not find expected node content"),
        ("a: 1\na: 2", "f:2: is not YAML: the key 'a' occurs twice"),
        ("a: !!python/object:os.system {}", "f:1: is not YAML: could not determine a constructor"),
        ("a: \x00", "f: is not YAML: "),
        (b"\xff\xfe\x00", "f: is not UTF-8 text"),
        ("a: " + "[" * 900 + "]" * 900, "f: is nested too deeply"),
        ("{" + '"a": {' * 5000, "f: is nested too deeply"),
    ],
)
def test_what_is_no_yaml_is_refused_in_one_line(read, content, message):
    with pytest.raises(BadInput) as refused:
        read(content)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_aliases_that_stand_for_too_much_are_refused(read):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(BadInput, match="its aliases expand to too much"):
        read("\n".join(lines))


def test_alias_to_itself_is_refused(read):
    with pytest.raises(BadInput, match="its aliases expand to too much"):
        read("a: &a [*a]")


def test_harmless_aliases_work(read):
    assert read("a: &a {x: 1}\nb: {<<: *a, z: 2}")[0].content["b"] == {"x": 1, "z": 2}


@pytest.mark.parametrize(("name", "reason"), [("absent", "No such file"), (".", "Is a directory")])
def test_file_that_cannot_be_read_is_named(name, reason):
    with pytest.raises(BadInput, match=f"{name}: cannot be read: {reason}"):
        read_documents(name)


def test_dash_is_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"kind: A")))
    assert read_documents("-")[0].location == "stdin:1: document 1"
