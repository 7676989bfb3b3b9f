"""The images under exactly the conditions of their pods, seen from inside the container."""

import json

import pytest

from kind.installation import NAME, PUBLISHER, Installation
from kind.nodes import ENGINE, engine

MOST_BYTES = {NAME: 250_000_000, PUBLISHER: 400_000_000}
"""With Debian's Python below it. More than half of the publisher's own is the official client."""
START_CPU_SECONDS = 1.5
LOOK = r"""
import getpass, json, os, pathlib
status = dict(line.split(":", 1) for line in pathlib.Path("/proc/1/status").read_text().splitlines())
variables = dict(one.split("=", 1) for one in pathlib.Path("/proc/1/environ").read_text().split("\0") if one)
def attempt(action):
    try:
        return str(action())
    except OSError as error:
        return type(error).__name__ + ": " + str(error)
print(json.dumps({
    "user": status["Uid"].split(), "capabilities": status["CapEff"].strip() + status["CapBnd"].strip(),
    "no_new_privileges": status["NoNewPrivs"].strip(), "variables": sorted(variables),
    "name": attempt(getpass.getuser), "writing": attempt(lambda: open("/tmp/x", "w")),
    "packages": sorted(path.name for path in pathlib.Path("/opt/taintwarden").glob("lib/python3*/site-packages/*")),
}))
"""


@pytest.fixture(scope="module", params=[NAME, PUBLISHER])
def installed(request: pytest.FixtureRequest, cluster) -> Installation:
    """The operator, and the publisher, which has an image of its own."""
    if request.param == PUBLISHER:
        request.getfixturevalue("publisher")
    found = Installation(cluster, request.param)
    found.wait_complete()
    return found


@pytest.fixture(scope="module")
def seen(installed: Installation) -> dict:
    """User, capabilities and files that a process in the container sees."""
    return json.loads(installed.execute(installed.pods()[0], LOOK))


def test_processes_have_no_user_name_and_no_capability(seen: dict) -> None:
    assert set(seen["user"]) == {"65532"}
    assert int(seen["capabilities"], 16) == 0
    assert seen["no_new_privileges"] == "1"
    assert not {"USER", "LOGNAME"} & set(seen["variables"])
    assert "Error" in seen["name"]


def test_nothing_can_be_written(seen: dict) -> None:
    assert "Read-only file system" in seen["writing"]


def test_the_image_has_no_development_packages(seen: dict, installed: Installation) -> None:
    official = {"kubernetes", "requests"}  # the client, and what it needs
    assert not {"uv", "pytest"} & set(seen["packages"])
    assert official & set(seen["packages"]) == (official if installed.name == PUBLISHER else set())


def test_a_start_is_cheap(operator: Installation) -> None:
    """The newest container is measured when it is a few seconds old."""
    operator.replace_restarted()
    leader = operator.leader()["metadata"]["name"]
    pod = next(one for one in operator.pods() if one["metadata"]["name"] != leader)
    operator.crash(pod)
    operator.wait_restarted(pod)
    assert operator.metric(pod, "process_cpu_seconds_total") < START_CPU_SECONDS


def test_the_image_is_small_and_labelled(installed: Installation) -> None:
    [image] = json.loads(engine("image", "inspect", installed.image))
    assert image["Size"] < MOST_BYTES[installed.name], f"{ENGINE} says {image['Size']:,} bytes"
    labels = image["Config"]["Labels"]
    assert labels["org.opencontainers.image.title"] == installed.name
    assert labels["org.opencontainers.image.version"] == installed.image.rpartition(":")[2]
