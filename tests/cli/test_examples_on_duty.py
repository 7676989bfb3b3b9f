"""Every example in the help of the commands for people on duty, and in docs/operating.md, does what it says."""

import re
import shlex
from pathlib import Path

import pytest

from cli.devices import for_devices, serve, slice_of
from cli.policies import POLICIES, condition, empty_cluster, running, set_status
from cli.test_plan import add_node
from cli.world import policy, taint

OPERATING = Path(__file__).parents[2] / "docs" / "operating.md"
COMMANDS = (["status"], ["plan"], ["doctor"], ["pause"], ["resume"], ["guard", "reset"])
ENDLESS = "--watch"  # has a test of its own


def from_help(cli) -> list[str]:
    found = []
    for command in COMMANDS:
        text = cli(*command, "--help").stdout
        block = text[text.index("Examples:") :].split("\n\n")[0]
        found += [line.strip() for line in block.splitlines()[1:] if line.strip()]
    return found


def from_pages() -> list[str]:
    names = "|".join(command[0] for command in COMMANDS)
    return re.findall(rf"^taintwarden (?:{names})\b.*", OPERATING.read_text(), re.MULTILINE)


@pytest.fixture
def cluster():
    """Objects of the examples: policy sla with a tripped guard, node a1 in zone-a with label pool=spot, a device."""
    cluster = empty_cluster()
    cluster.create(POLICIES, policy())
    cluster.create(POLICIES, for_devices())
    serve(cluster)
    cluster.create("resourceslices", slice_of("node-1", gpu_0=[]))
    add_node(cluster, "a1", **{"topology.kubernetes.io/zone": "zone-a", "pool": "spot"})
    cluster.store.modify("nodes", "a1", "", lambda one: one["spec"]["taints"].append(taint("", "maintenance")))
    return cluster


async def test_every_example_works(cluster, cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = [one for one in (*from_help(cli), *from_pages()) if ENDLESS not in one]
    assert len(examples) > 15
    async with running(cluster, cli, tmp_path) as run:
        for example in examples:
            opened = {
                "trippedAt": "2026-01-31T12:00:00.000000Z",
                "cause": "c",
                "counted": [{"namespace": "shop", "pods": 9}],
            }
            set_status(cluster, guard=opened, conditions=[condition("GuardTripped", "True", "9 pods", "MassEviction")])
            _, *args = shlex.split(example.removeprefix("kubectl "), comments=True)
            args = [one for one in args if one not in ("--context", "production")]
            asks = (args[:1] == ["guard"] or "--all" in args) and not {"--yes", "--dry-run"} & {*args}
            if args[0] in ("pause", "resume"):
                await run("resume" if args[0] == "pause" else "pause", "sla")
            result = await run(*args)
            assert result.exit_code in ((2,) if asks else (0, 10)), (example, result.output)
            assert result.stdout
