"""The reduced schema against the definitions of the Kubernetes release that the control plane is built from."""

import json
import re
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from taintwarden.kube.wire.protobuf_schema import SCHEMA

MODULES = Path(__file__).parents[1] / "controlplane"
SOURCES = {
    "core.v1": ("k8s.io/api", "core/v1"),
    "apps.v1": ("k8s.io/api", "apps/v1"),
    "meta.v1": ("k8s.io/apimachinery", "pkg/apis/meta/v1"),
    "runtime": ("k8s.io/apimachinery", "pkg/runtime"),
}
OURS = ("meta.v1.List", "meta.v1.Object", "meta.v1.Entry")
"""Stand for messages of many names."""
MESSAGE = re.compile(r"^message (\w+) \{(.*?)^\}", re.DOTALL | re.MULTILINE)
FIELD = re.compile(r"^ *(optional|repeated|map<string, *)\s*([\w.]+)>? +(\w+) *= *(\d+)", re.MULTILINE)
VARINTS = {"int32", "int64", "bool"}


@cache
def definitions(package: str) -> Mapping[str, Mapping[str, tuple[int, bool, str]]]:
    """Messages of a package: their fields with number, whether repeated, and type."""
    module, folder = SOURCES[package]
    command = ["go", "mod", "download", "-json", f"-modfile={MODULES / 'go.mod'}", module]
    found = subprocess.run(command, cwd=MODULES, check=True, capture_output=True, text=True).stdout
    text = (Path(json.loads(found)["Dir"]) / folder / "generated.proto").read_text()
    return {
        message: {
            name: (int(number), label != "optional", "map" if label.startswith("map") else kind)
            for label, kind, name, number in FIELD.findall(body)
        }
        for message, body in MESSAGE.findall(text)
    }


def package_and_message(name: str) -> tuple[str, str]:
    package = next(each for each in SOURCES if name.startswith(f"{each}."))
    return package, name.removeprefix(f"{package}.").split(".")[0]


def defined(name: str) -> Mapping[str, tuple[int, bool, str]]:
    package, message = package_and_message(name)
    return definitions(package)[message]


def wire_type(kind: str) -> str:
    kind = kind.partition(" = ")[0].removeprefix("repeated ")
    return kind if kind in VARINTS else "length-delimited"


def test_fields_have_the_numbers_of_the_release() -> None:
    for name in set(SCHEMA) - set(OURS):
        are_of_the_release(name)


def are_of_the_release(name: str) -> None:
    fields = defined(name)
    for field, (number, kind) in SCHEMA[name].items():
        real_number, is_repeated, real_kind = fields[field]
        assert number == real_number, field
        assert (kind.startswith("repeated ") or kind == "map") == is_repeated, field
        assert wire_type(kind) == wire_type(real_kind), field
        if kind == "map":
            assert real_kind == "map", field
        elif "." in kind:  # an envelope has bytes where the declared schema has the message
            _, message = package_and_message(kind.removeprefix("repeated "))
            assert real_kind.split(".")[-1] in (message, "bytes"), field


@pytest.mark.parametrize("kind", ["core.v1.PodList", "core.v1.NodeList", "apps.v1.ReplicaSetList"])
def test_every_list_is_like_the_one_that_stands_for_all(kind: str) -> None:
    assert {name: number for name, (number, _) in SCHEMA["meta.v1.List"].items()} == {
        name: number for name, (number, *_) in defined(kind).items()
    }


def test_every_object_is_like_the_one_that_stands_for_all() -> None:
    pod = defined("core.v1.Pod")
    assert all(pod[name][0] == number for name, (number, _) in SCHEMA["meta.v1.Object"].items())
