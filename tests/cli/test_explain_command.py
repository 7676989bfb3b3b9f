import json
import re
from pathlib import Path

import pytest
import yaml

from cli.world import explained, history, node, pod, policy, taint, toleration
from taintwarden_cli.explain.explanation_table import parts
from taintwarden_cli.rendering import render

ARGS = ("explain", "pod", "shop/web-0", "-f", "cluster.yaml")
AT = ("--at", "2026-01-31T12:00:00Z")


def test_pod_that_leaves_exits_with_10(cli, samples):
    result = cli(*ARGS, *AT)
    assert result.exit_code == 10
    assert "leaves at 2026-01-31T12:04:00Z, in 4m" in result.stdout


def test_pod_that_stays_exits_with_0(cli, samples):
    objects = [pod(toleration("Gt", "950")), node(taint("980")), policy()]
    result = cli("explain", "pod", "shop/web", "-f", "-", *AT, stdin=yaml.safe_dump_all(objects))
    assert (result.exit_code, "Fate        stays" in result.stdout) == (0, True)


def test_pod_that_only_would_leave_exits_with_0(cli, samples):
    text = Path("cluster.yaml").read_text().replace("kind: TaintEvictionPolicy\nmetadata:\n  name: sla", "kind: Other")
    result = cli("explain", "pod", "shop/web-0", "-f", "-", *AT, stdin=text)
    assert (result.exit_code, "would leave" in result.stdout) == (0, True)


@pytest.mark.usefixtures("terminal")
def test_table_fits_into_100_columns(cli, samples):
    assert max(map(len, cli(*ARGS, *AT).stdout.splitlines())) <= 100


def test_table_shows_each_taint_once(cli, samples):
    lines = cli(*ARGS, *AT).stdout.splitlines()
    assert all(line.isascii() and line.isprintable() and line == line.rstrip() for line in lines)
    assert [line for line in lines if line.startswith("Taint ")] == [
        "Taint sla=940:NoExecute  not tolerated",
        "Taint example.com/cni-version=v1.14.0:NoExecute  not tolerated, policy versions is in mode Paused",
        "Taint dedicated=shop:NoSchedule  tolerated, policy everything is in mode DryRun",
        "Taint example.com/hint:PreferNoSchedule  not selected",
    ]


def test_policies_that_do_not_act_for_one_reason_are_one_line():
    elsewhere = [policy(f"p{number}", nodeSelector={"matchLabels": {"pool": "b"}}) for number in range(5)]
    text = render(*parts(explained(pod(), node(taint()), policy(), *elsewhere)))
    assert [line for line in text.splitlines() if "not by" in line] == [
        "  not by      p0, p1, p2 and 2 more: nodeSelector does not select the node"
    ]


@pytest.mark.usefixtures("terminal")
def test_long_keys_fold_and_lose_nothing():
    key = f"{'a' * 250}/{'b' * 60}"
    lines = render(*parts(explained(pod(), node(taint("x", key)), policy("long", key)))).splitlines()
    assert max(map(len, lines)) <= 100
    assert key in re.sub(r"\s", "", "".join(lines))


def test_output_cannot_fool_the_terminal():
    text = render(*parts(explained(pod(toleration("Equal", "\x1b[31m[bold]", effect="\x1b")), node(taint()), policy())))
    assert "\x1b" not in text
    assert "[bold]" in text


def test_held_taint_and_typo_are_shown():
    spoilt = node(taint("high"), taint("high", "other"), recorded=history(("980", 3600), ("high", 60)))
    answers = pod(toleration("Gt", "950"), toleration("Gt", "1", key="other"))
    text = render(*parts(explained(answers, spoilt, policy(key="*"))))
    assert "judged by   980, its last valid value" in text
    assert "retained: its value is invalid" in text


def test_answer_for_scripts(cli, samples):
    result = cli(*ARGS, *AT, "-o", "json")
    answer = json.loads(result.stdout)
    assert (answer["fate"], answer["deadline"], answer["secondsLeft"]) == ("Leaves", "2026-01-31T12:04:00Z", 240)
    assert result.stdout.isascii()


def test_structure_is_as_documented(cli, samples):
    answer = json.loads(cli(*ARGS, *AT, "-o", "json").stdout)
    told = re.sub(r"\s+", " ", cli("explain", "pod", "--help").stdout)
    documented = set(re.findall(r"\w+", told[told.index("JSON has:") : told.index("Times are RFC 3339")]))
    assert set(answer) | set(answer["taints"][0]) - {"invalidValue"} <= documented
    assert list(answer["taints"][0]["tolerations"][0]) == ["toleration", "source", "holds", "answer", "text"]


@pytest.mark.parametrize(
    "args",
    [
        ("shop/web-0", "-f", "pod.yaml", "-f", "node.yaml", "-f", "policies.yaml"),
        ("web-0", "-n", "shop", "-f", "cluster.yaml"),
    ],
)
def test_files_may_be_several_and_the_namespace_given_apart(cli, samples, args):
    assert cli("explain", "pod", *args, *AT).stdout == cli(*ARGS, *AT).stdout


def test_operators_switched_off_are_honoured(cli, samples):
    off = cli(*ARGS, *AT, "--no-numeric-operators", "-o", "json")
    assert "uses an operator that is switched off" in off.stdout
    assert cli(*ARGS, *AT, "-o", "json", env={"TAINTWARDEN_NUMERIC_OPERATORS": "false"}).stdout == off.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["a/b/web-0"], "write NAMESPACE/NAME, or NAME with --namespace: 'a/b/web-0' is neither"),
        (["a/b/c"], "write NAMESPACE/NAME"),
        (["shop/"], "write NAMESPACE/NAME"),
        (["shop/web-0", "-n", "bank"], "name two namespaces"),
        (["shop/web-0", "--at", "noon"], "'noon' is not an RFC 3339 time: write for example 2026-01-31T12:00:00Z"),
        (["shop/web-0", "--at", "2026-01-31T12:00:00"], "has no time zone: append Z for UTC"),
        (["shop/web-0", "-f", "x", "--context", "y"], "-f reads files and no cluster"),
        (["shop/web-0", "-o", "xml"], "'xml' is not one of"),
        (["shop/web-0", "--fast"], "No such option"),
        ([], "Missing argument 'NS/NAME'"),
    ],
)
def test_wrong_usage_exits_with_2_and_one_clear_line(cli, samples, args, message):
    result = cli("explain", "pod", *args)
    last = result.stderr.splitlines()[-1]
    assert (result.exit_code, result.stdout, last[:7]) == (2, "", "Error: ")
    assert message in last


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["absent.yaml"], "taintwarden: absent.yaml: cannot be read: No such file or directory"),
        (
            ["node.yaml", "policies.yaml"],
            "taintwarden: the files contain no Pod shop/web-0; they contain Node n1, "
            + ", ".join(f"TaintEvictionPolicy {name}" for name in ("sla", "everything", "versions")),
        ),
        (["pod.yaml"], "taintwarden: the files contain no Node n1, which pod shop/web-0 is bound to"),
    ],
)
def test_unusable_files_exit_with_2_and_one_line(cli, samples, files, message):
    result = cli("explain", "pod", "shop/web-0", *[f"--filename={file}" for file in files])
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", message + "\n")


def test_bad_setting_in_the_environment_exits_with_2(cli, samples):
    result = cli(*ARGS, env={"TAINTWARDEN_SEMVER_OPERATORS": "maybe"})
    assert (result.exit_code, result.stderr[:38]) == (2, "taintwarden: --semver-operators (or TA")
