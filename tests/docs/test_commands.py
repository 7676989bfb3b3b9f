"""Taintwarden's command lines in the pages name commands, flags and choices that exist; so do `make` and paths."""

import re
import shlex
from collections.abc import Iterator

import click
import pytest

from docs.pages import BLOCKS, BY_NAME, PAGES, ROOT
from taintwarden.settings import PREFIX, Settings
from taintwarden_cli.main import main
from taintwarden_placement.settings import WebhookSettings

SHELL = ("sh", "console")
TARGETS = set(re.findall(r"^([a-z0-9-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
FOREIGN_FLAGS = {
    "--admission-control-config-file",
    "--balance-similar-node-groups",
    "--balancing-ignore-label",
    "--controllers",
    "--feature-gates",
    "--kube-api-burst",
    "--kube-api-qps",
    "--node-labels",
    "--register-with-taints",
    "--reset-values",
    "--server-side",
    "--set",
}
OWN_PROGRAMS = (ROOT / "tools" / "bench" / "__main__.py", ROOT / "tests" / "mutants" / "__main__.py")
OWN_FLAGS = {flag for one in OWN_PROGRAMS for flag in re.findall(r"\"(--[a-z-]+)\"", one.read_text())}
FOREIGN_VARIABLES = {"TAINTWARDEN_E2E_CONTEXTS"}
TOP_LEVEL = ("operator/", "packages/", "tests/", "crds/", "deploy/", "docs/", "tools/", ".ci/")


class WrongCommandError(AssertionError):
    """The command line is not one that `taintwarden` takes."""


def check(words: list[str]) -> None:
    """Walk through groups, then compare flags and their choices. Arguments may be anything."""
    command: click.Command = main
    words = list(words)
    while words:
        word = words.pop(0)
        if word.startswith("-") and word != "-":
            flag, equals, value = word.partition("=")
            option = next((one for one in command.params if flag in (*one.opts, *one.secondary_opts)), None)
            if flag in ("-h", "--help"):
                continue
            if not isinstance(option, click.Option):
                raise WrongCommandError(f"{command.name} has no flag {flag}")
            if not option.is_flag:
                given = value if equals else words.pop(0)
                option.type.convert(given, option, None)
        elif isinstance(command, click.Group):
            found = command.get_command(click.Context(command), word)
            if found is None:
                raise WrongCommandError(f"{command.name} has no command {word}")
            command = found


def lines(text: str) -> Iterator[str]:
    """Command lines of a block, continued ones joined, prompts and comments removed."""
    for line in text.replace("\\\n", " ").splitlines():
        yield line.removeprefix("$ ")


def our_commands() -> Iterator[tuple[str, list[str]]]:
    for block in BLOCKS:
        if block.language in SHELL:
            for line in lines(block.text):
                if block.language == "console" and not re.match(r"(kubectl |)taintwarden ", line):
                    continue
                for part in re.split(r"\s\|\s|;|&&", line):
                    words = shlex.split(part, comments=True)
                    words = words[1:] if words[:2] == ["kubectl", "taintwarden"] else words
                    if words[:1] == ["taintwarden"]:
                        yield block.where, words[1:]
    for page in PAGES:
        for span in page.code:
            words = span.removeprefix("kubectl ").split()
            if words[0] == "taintwarden" and len(words) > 1:
                yield page.name, words[1:]


COMMANDS = list(our_commands())


def test_commands_were_found():
    assert len(COMMANDS) > 10
    assert {words[0] for _, words in COMMANDS} >= {"run", "explain", "validate"}


def test_a_command_exists():
    for _, words in COMMANDS:
        check(words)


@pytest.mark.parametrize("words", [["walk"], ["run", "--fast"], ["explain", "cronjob"], ["validate", "-o", "xml"]])
def test_a_wrong_command_is_noticed(words):
    with pytest.raises((WrongCommandError, click.BadParameter)):
        check(words)


def test_every_command_is_in_the_readme():
    named = set(re.findall(r"`taintwarden ([\w-]+)`", BY_NAME["README.md"].text))
    assert set(main.entries) - named <= {"repair"}  # it goes


def test_flags_in_the_prose_exist():
    known = {
        flag for command in _all_commands(main) for one in command.params for flag in (*one.opts, *one.secondary_opts)
    }
    named = {span.split("=")[0].split()[0] for page in PAGES for span in page.code if span.startswith("--")}
    assert named - known - FOREIGN_FLAGS - OWN_FLAGS == set()


def _all_commands(command: click.Command) -> Iterator[click.Command]:
    yield command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            one = command.get_command(context, name)
            assert one is not None
            yield from _all_commands(one)


def test_variables_exist():
    known = {
        PREFIX + name.upper() for kind in (Settings, WebhookSettings) for name in kind.__struct_fields__
    } | FOREIGN_VARIABLES
    named = {name for page in PAGES for name in re.findall(r"\bTAINTWARDEN_[A-Z0-9_]+\b", page.text)}
    assert named - known == set()


def test_make_targets_exist():
    named = {
        target
        for block in BLOCKS
        if block.language in SHELL
        for target in re.findall(r"^make ([a-z0-9-]+)", block.text, re.M)
    }
    named |= {span.split()[1] for page in PAGES for span in page.code if re.match(r"make [a-z]", span)}
    assert named - TARGETS == set()
    assert named >= {"demo", "test", "check", "control-plane", "test-e2e", "bench", "help"}


def test_paths_exist():
    named = {span for page in PAGES for span in page.code if span.startswith(TOP_LEVEL) and " " not in span}
    mine = {"deploy/mine", "deploy/mine/kustomization.yaml"}
    assert {path for path in named - mine if not any(ROOT.glob(path))} == set()
    in_blocks = {
        path
        for block in BLOCKS
        if block.language in SHELL
        for path in re.findall(r"(?:^|\s)((?:deploy|crds|operator|tests)/\S*)", block.text)
    }
    assert {path for path in in_blocks - mine if not (ROOT / path).exists()} == set()
