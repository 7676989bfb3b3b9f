"""The examples in the help texts do what they say."""

import asyncio
import json
import re
import shlex

import pytest
import yaml

from definitions import define
from localcluster import LocalCluster
from taintwarden_cli.main import main

COMMANDS = (["explain", "pod"], ["validate"])


def examples(cli, command: list[str]) -> list[str]:
    text = cli(*command, "--help").stdout
    block = text[text.index("Examples:") :].split("\n\n")[0]
    joined = re.sub(r"\|\n\s+", "| ", block)
    return [line.strip() for line in joined.splitlines()[1:] if line.strip()]


@pytest.fixture
def cluster(samples) -> LocalCluster:
    """A cluster that holds the samples."""
    cluster = LocalCluster()
    define(cluster)
    for obj in yaml.safe_load_all((samples / "cluster.yaml").read_text()):
        plural = {"TaintEvictionPolicy": "taintevictionpolicies"}.get(obj["kind"], obj["kind"].lower() + "s")
        cluster.store.create(plural, obj)
    return cluster


async def test_every_example_works(cli, samples, cluster, tmp_path):
    objects = list(yaml.safe_load_all((samples / "cluster.yaml").read_text()))
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    count = 0
    async with cluster.serve() as server:
        env = {"TAINTWARDEN_KUBECONFIG": str(server.write_kubeconfig(tmp_path / "kubeconfig"))}
        for command in COMMANDS:
            for example in examples(cli, command):
                line = example.rpartition("| ")[2].removeprefix("kubectl ")
                program, *args = shlex.split(line)
                result = await asyncio.to_thread(cli, *args, stdin=listed if "|" in example else None, env=env)
                assert program == "taintwarden"
                assert result.exit_code in (0, 1, 10), (example, result.output)
                assert result.stderr == "", (example, result.output)
                assert result.stdout
                count += 1
    assert count == 12


@pytest.mark.parametrize("command", COMMANDS)
def test_help_names_its_exit_codes(cli, command):
    assert "Exit codes:" in cli(*command, "--help").stdout


def test_every_command_has_help(cli):
    listed = cli("--help").stdout
    for name, entry in main.entries.items():
        assert f"  {name} " in listed
        assert entry.short_help in listed


def test_unknown_command_ends_in_one_clear_line(cli):
    result = cli("explode")
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (2, "Error: No such command 'explode'.")
