import errno
import json
import os
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import yaml
from hypothesis import strategies as st

from cli.world import pod, policy, profile, toleration
from taintwarden.engine.numeric import explain_integer, parse_integer
from taintwarden.engine.versions import explain_version, parse_version
from taintwarden_cli.files.validating import check_files

EXISTS = toleration("Exists")


class Quoting(yaml.SafeDumper):
    """Quotes every text, so that none is read as a number."""


Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


def dump(*contents: object) -> str:
    return yaml.dump_all(contents, Dumper=Quoting, sort_keys=False, explicit_start=len(contents) > 1)


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Check objects in one file; what is found as `severity path: message`."""
    monkeypatch.chdir(tmp_path)

    def checker(*objects: Any) -> list[str]:
        Path("f.yaml").write_text(dump(*objects))
        return [f"{one.severity} {one.message}" for one in check_files(["f.yaml"]).findings]

    return checker


def workload(kind: str, template: Any, *path: str, api: str = "apps/v1", **metadata: Any) -> dict[str, Any]:
    body = template
    for name in reversed(path):
        body = {name: body}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "w", **metadata}} | body


# -- policies ---------------------------------------------------------------------------------------------------------


def test_valid_objects_have_no_findings(check):
    assert check(policy(), pod(EXISTS, extended=[toleration("Gt", "950")])) == []


def test_every_fault_of_a_policy_is_found(check):
    found = check(policy(mode="Enforced", timing={"violationGraceSeconds": -1}))
    assert found == [
        'error spec.mode: Unsupported value: "Enforced": supported values: "Enforce", "DryRun"; write Enforce',
        "error spec.timing.violationGraceSeconds: Invalid value: -1: must be between 0 and 2147483647, inclusive",
    ]


def test_profile_is_checked(check):
    assert check(profile("p", toleration("Gt", "0950"))) == [
        'error spec.tolerations[0].value: Invalid value: "0950": leading zeros are not allowed: write 950, not 0950'
    ]


def test_the_natural_order_needs_no_warning(check):
    compared = toleration("VersionGt", "5.15.0-91-generic")
    assert check(profile("p", compared), pod(EXISTS, extended=[compared])) == []


BESIDE = (
    'warning spec.tolerations: Invalid value: "sla": TolerationProfile p names this key, and Kubernetes does not read '
    "profiles; add key: sla, operator: Exists; the profile still decides"
)


@pytest.mark.parametrize(
    ("made", "pods", "found"),
    [
        (profile("p", toleration("Gt", "950"), app="web"), pod(), [BESIDE]),
        (profile("p", toleration("Gt", "950"), app="web"), pod(toleration("Exists")), []),
        (profile("p", toleration("Gt", "950"), app="db"), pod(), []),
        (profile("p", toleration("Gt", "950"), space="bank"), pod(), []),
        (profile("p", {"operator": "Exists"}), pod(), []),
    ],
)
def test_pod_without_a_native_toleration_beside_its_profile_is_warned_of(check, made, pods, found):
    assert check(made, pods) == found


def test_template_is_warned_of_too(check):
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {}}
    web = workload("Deployment", template, "spec", "template", namespace="shop")
    (found,) = check(web, profile("p", toleration("Gt", "950"), app="web"))
    assert found == BESIDE.replace("spec.tolerations", "spec.template.spec.tolerations")


@pytest.mark.parametrize("kind", ["TaintEvictionPolicies", "TolerationThing"])
def test_unknown_kind_of_taintwardens_group_is_an_error(check, kind):
    (found,) = check(policy() | {"kind": kind})
    assert found.startswith(f'error kind: Invalid value: "{kind}": must be a kind of taintwarden.io')


@pytest.mark.parametrize("version", ["taintwarden.io/v1", "v1alpha1", "apps/v1"])
def test_policy_of_another_group_or_version_is_an_error(check, version):
    assert check(policy() | {"apiVersion": version})[0].startswith("error apiVersion: ")


@pytest.mark.parametrize("obj", [{"apiVersion": "v1"}, "text", 5, [1]])
def test_what_has_no_kind_is_an_error(check, obj):
    assert check(obj) == ["error kind: Required value: must be specified: every Kubernetes object has a kind"]


# -- pods -------------------------------------------------------------------------------------------------------------


def test_annotation_that_is_no_text_is_an_error(check):
    (found,) = check(pod(annotations={"taintwarden.io/tolerations": [toleration("Gt", "950")]}))
    assert "must be a string that holds JSON; put it in quotes, or below a |" in found


@pytest.mark.parametrize(
    ("value", "severity", "reason"),
    [(True, "error", "must be a string"), ("yes", "warning", "has no effect"), ("True", "warning", "has no effect")],
)
def test_opting_out_takes_the_text_true(check, value, severity, reason):
    (found,) = check(pod(annotations={"taintwarden.io/do-not-evict": value}))
    assert found.startswith(f"{severity} metadata.annotations[taintwarden.io/do-not-evict]: ")
    assert reason in found
    assert check(*(pod(annotations={"taintwarden.io/do-not-evict": one}) for one in ("true", "false"))) == []


@pytest.mark.parametrize("native", [EXISTS, {"operator": "Exists"}, toleration("Equal", "980")])
def test_annotation_beside_a_native_toleration_is_fine(check, native):
    assert check(pod(native, extended=[toleration("Gt", "950")])) == []


@pytest.mark.parametrize(
    ("operator", "needs"),
    [
        ("Gt", "feature gate TaintTolerationComparisonOperators"),
        ("Lt", "feature gate TaintTolerationComparisonOperators"),
        ("SemverEq", "KEP-5721"),
    ],
)
def test_native_comparison_needs_a_newer_server(check, operator, needs):
    (found,) = check(pod(toleration(operator, "1")))
    assert found.startswith(f'warning spec.tolerations[0].operator: Invalid value: "{operator}": the pod is refused')
    assert needs in found


@pytest.mark.parametrize(
    ("native", "fault"),
    [
        (toleration("Gt", "0950"), "leading zeros are not allowed"),
        (toleration("Near", "1"), 'supported values: "Equal", "Exists"'),
        ({"key": "sla", "value": 950}, 'must be a string; write "950", in quotes'),
        ({"value": "950"}, "must be specified when operator is Equal"),
        (EXISTS | {"violationGraceSeconds": 5}, "may not be specified when operator is Exists"),
        (EXISTS | {"tolerationSeconds": 5, "effect": ""}, "must be NoExecute when tolerationSeconds is specified"),
        ("sla", "must be an object"),
    ],
)
def test_native_toleration_that_every_server_refuses_is_an_error(check, native, fault):
    found = [one for one in check(pod(native)) if one.startswith("error spec.tolerations[0]")]
    assert fault in found[0]


def test_grace_in_a_native_toleration_is_an_error(check):
    found = check(pod(toleration("Gt", "950", violationGraceSeconds=5)))
    assert "may not be specified in a native toleration; write it in the annotation" in found[0]


def test_pod_as_a_cluster_stores_it_is_fine(check):
    stored = {
        "operator": "Exists",
        "key": "node.kubernetes.io/not-ready",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    assert check(pod(stored, toleration("", "x"), {"operator": "Exists", "key": "", "value": None})) == []


@pytest.mark.parametrize("spec", [None, 5, {"tolerations": 5}, {"tolerations": None}])
def test_junk_in_a_pod_is_left_to_the_server(check, spec):
    assert check({"apiVersion": "v1", "kind": "Pod", "spec": spec}) == []


# -- the command ------------------------------------------------------------------------------------------------------


def write(path: str, *objects: Any) -> str:
    Path(path).write_text("---\n" + dump(*objects).removeprefix("---\n"))
    return path


def test_finding_is_one_line_with_its_place(cli, samples):
    result = cli("validate", write("f.yaml", pod(), policy(mode="Off")))
    first, summary = result.stdout.splitlines()
    line = Path("f.yaml").read_text().splitlines().index('  "mode": "Off"') + 1
    assert first.startswith(
        f'f.yaml:{line}: document 2: TaintEvictionPolicy/sla: error: spec.mode: Unsupported value: "Off":'
    )
    assert summary == "1 file: 2 objects checked; 1 error, 0 warnings"
    assert result.exit_code == 1


def test_warnings_do_not_fail(cli, samples):
    result = cli("validate", write("f.yaml", pod(extended=[toleration("Gt", "950")])))
    assert (result.exit_code, result.stdout.splitlines()[-1][-19:]) == (0, "0 errors, 1 warning")


def test_other_kinds_are_counted_and_ignored(cli, samples):
    others = ({"kind": "Service"}, {"kind": "Widget", "apiVersion": "example.com/v1"})
    deployment = workload("Deployment", {}, api="example.com/v1")
    rollout = workload("Rollout", {"workloadRef": {}}, "spec", api="argoproj.io/v1alpha1")
    publisher = {"kind": "TaintPublisher", "apiVersion": "taintwarden.io/v1alpha1"}
    result = cli("validate", write("f.yaml", *others, deployment, rollout))
    counted = "Service 1, argoproj.io/Rollout 1, example.com/Deployment 1, example.com/Widget 1"
    assert (result.exit_code, f"; ignored: {counted}; 0 errors" in result.stdout) == (0, True)
    shown = cli("validate", write("f.yaml", publisher)).stdout
    assert "; ignored: taintwarden.io/TaintPublisher 1; only the API server checks TaintPublishers; " in shown


def test_lists_are_unfolded(cli, samples):
    listed = {"kind": "List", "items": [policy(), policy("b", mode="Off")]}
    found = cli("validate", write("f.yaml", listed)).stdout
    line = Path("f.yaml").read_text().splitlines().index('    "mode": "Off"') + 1
    assert f"f.yaml:{line}: document 1 item 1: TaintEvictionPolicy/b: error: " in found


def test_unreadable_file_does_not_hide_the_others(cli, samples):
    Path("bad.yaml").write_text("a: [\n")
    result = cli("validate", "absent.yaml", "bad.yaml", write("f.yaml", policy(mode="Off")))
    assert result.exit_code == 2
    assert len(result.stdout.splitlines()) == 2
    assert result.stderr.splitlines() == [
        "taintwarden: absent.yaml: cannot be read: No such file or directory",
        "taintwarden: bad.yaml:2: is not YAML: did not find expected node content",
    ]


def test_report_for_scripts(cli, samples):
    result = cli("validate", "-o", "json", write("f.yaml", policy(mode="Off"), {"kind": "Service"}), "absent.yaml")
    report = json.loads(result.stdout)
    (finding,) = report.pop("findings")
    reason = "absent.yaml: cannot be read: No such file or directory"
    assert report == {
        "files": 2, "objects": 2, "checked": 1, "ignored": {"Service": 1},
        "errors": 1, "warnings": 0, "unreadable": [{"file": "absent.yaml", "reason": reason}],
    }  # fmt: skip
    assert finding.pop("message") == 'spec.mode: Unsupported value: "Off": supported values: "Enforce", "DryRun"'
    assert finding == {
        "file": "f.yaml", "line": 11, "document": 1, "item": None, "kind": "TaintEvictionPolicy", "name": "sla",
        "severity": "error", "path": "spec.mode", "reason": 'supported values: "Enforce", "DryRun"', "remedy": "",
    }  # fmt: skip


def test_output_cannot_fool_the_terminal(cli, samples):
    Path("f.yaml").write_text('kind: TaintEvictionPolicy\nmetadata: {name: "a\\e[31m"}\n')
    assert "\x1b" not in cli("validate", "f.yaml").stdout


def test_shipped_samples_are_valid(cli):
    folder = Path(__file__).parents[2] / "deploy" / "samples"
    result = cli("validate", *sorted(str(path) for path in folder.glob("*.yaml")))
    assert (result.exit_code, result.stdout[-21:]) == (0, "0 errors, 0 warnings\n")


# -- values without quotes -------------------------------------------------------------------------------------


def in_annotation(value: str) -> str:
    """A policy whose selector has this scalar where a text has to be, on the line 7."""
    head = "apiVersion: taintwarden.io/v1alpha1\nkind: TaintEvictionPolicy\nmetadata: {name: p}\nspec:\n  taints:\n"
    return f"{head}  - key: sla\n  podSelector: {{matchLabels: {{a: {value}}}}}\n"


@pytest.mark.parametrize("text", ["1.30", "25.10", "2024.10", "535.10", "010", "0950", "1e3", "0x1F", "1_000"])
def test_the_remedy_of_a_number_is_its_text(cli, samples, text):
    """Followed, it is the value that was meant, and it is taken."""
    result = cli("validate", "-", stdin=in_annotation(text))
    said = f'spec.podSelector.matchLabels[a]: Invalid value: {text}: must be a string; write "{text}", in quotes'
    assert said in result.stdout
    followed = cli("validate", "-", stdin=in_annotation(f'"{text}"'))
    assert (followed.exit_code, "0 errors" in followed.stdout) == (0, True)


@pytest.mark.parametrize("text", ["2026-01-31", "1.2.3", "v1.30", "0b"])
def test_what_kubectl_reads_as_text_is_text(cli, samples, text):
    assert "must be a string" not in cli("validate", "-", stdin=in_annotation(text)).stdout


@pytest.mark.parametrize("text", ["yes", "y", "off", "true"])
def test_words_that_are_no_text_are_written_in_quotes(cli, samples, text):
    """The finding has the line of its field."""
    shown = cli("validate", "-", stdin=in_annotation(text)).stdout
    assert shown.startswith("stdin:7: document 1: ")
    assert f'must be a string; write "{text}", in quotes' in shown


# -- files ------------------------------------------------------------------------------------------------------------


def test_a_folder_is_checked(cli, samples):
    Path("folder/deeper").mkdir(parents=True)
    for path in ("folder/a.yaml", "folder/b.yml", "folder/c.json", "folder/deeper/d.yaml"):
        Path(path).write_text(json.dumps(policy()))
    Path("folder/notes.txt").write_text("no object")
    assert cli("validate", "folder").stdout.startswith("3 files: 3 objects checked; ")
    assert cli("validate", "-R", "-f", "folder").stdout.startswith("4 files: 4 objects checked; ")


@pytest.mark.parametrize("content", ["", "\n", "---\n---\n", "# nothing\n", "null\n"])
def test_a_file_without_an_object_fails(cli, samples, content):
    Path("empty.yaml").write_text(content)
    result = cli("validate", "empty.yaml", "pod.yaml")
    assert (result.exit_code, result.stderr) == (2, "taintwarden: empty.yaml: has no object\n")


@pytest.mark.parametrize("flags", [(), ("-R",)])
def test_a_folder_that_cannot_be_read_is_reported_and_does_not_hide_the_others(cli, samples, monkeypatch, flags):
    Path("folder").mkdir()
    scan = os.scandir

    def refuse(path: Any) -> Any:
        if Path(path) == Path("folder"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    result = cli("validate", *flags, "folder" if not flags else ".", "a" * 300)
    assert result.exit_code == 2
    assert "taintwarden: folder: cannot be read: Permission denied" in result.stderr.splitlines()
    assert f"taintwarden: {'a' * 300}: cannot be read: File name too long" in result.stderr.splitlines()


def test_a_folder_without_files_fails(cli, samples):
    Path("folder").mkdir()
    result = cli("validate", "folder")
    assert (result.exit_code, "is a folder without .json, .yaml, .yml files" in result.stderr) == (2, True)


def test_no_file_is_wrong_usage(cli):
    assert cli("validate").exit_code == 2


@pytest.mark.parametrize("text", ["a: {{ .Values.a }}\n", "{{- if .Values.on }}\na: 1\n{{- end }}\n"])
def test_a_helm_template_has_to_be_rendered(cli, samples, text):
    Path("template.yaml").write_text(text)
    result = cli("validate", "template.yaml")
    assert result.exit_code == 2
    assert "is a template, not YAML: render it first, for example with helm template" in result.stderr


# -- templates of other kinds -----------------------------------------------------------------------------------------

WRONG = {"metadata": {"annotations": {"taintwarden.io/tolerations": "["}}, "spec": {"containers": [{"name": "a"}]}}


@pytest.mark.parametrize(
    ("kind", "api", "path"),
    [
        ("Rollout", "argoproj.io/v1alpha1", ("spec", "template")),
        ("RayCluster", "ray.io/v1", ("spec", "headGroupSpec", "template")),
        ("CloneSet", "apps.kruise.io/v1alpha1", ("spec", "template")),
        ("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", ("spec", "leaderWorkerTemplate", "workerTemplate")),
    ],
)
def test_a_template_of_another_kind_is_checked(check, kind, api, path):
    (found,) = check(workload(kind, WRONG, *path, api=api))
    assert found.startswith(f"error {'.'.join(path)}.metadata.annotations[taintwarden.io/tolerations]: ")


def test_templates_in_lists_are_checked(check):
    jobs = [{"name": "a", "template": {"spec": {"template": WRONG}}}, {"name": "b", "template": {"spec": {}}}]
    (found,) = check(workload("JobSet", jobs, "spec", "replicatedJobs", api="jobset.x-k8s.io/v1alpha2"))
    assert found.startswith("error spec.replicatedJobs[0].template.spec.template.metadata.annotations")
    tasks = [{"name": "a", "template": WRONG}]
    assert check(workload("Job", tasks, "spec", "tasks", api="batch.volcano.sh/v1alpha1"))


# -- suggestions ------------------------------------------------------------------------------------------------------


@hypothesis.given(st.text(alphabet="0123456789.,_-+eExXvV%: abrc/", max_size=12))
def test_every_value_that_is_suggested_is_taken(text):
    for explain, parse in ((explain_integer, parse_integer), (explain_version, parse_version)):
        said = explain(text)
        if said is not None and ": write " in said:
            meant = said.split(": write ", 1)[1].split(", not ")[0]
            assert parse(meant) is not None, said


# -- duplicate names ---------------------------------------------------------------------------------------------------


def test_two_policies_of_one_name_are_an_error(check):
    (found,) = check(policy(), policy(mode="DryRun"), policy("other"))
    assert found.startswith(
        'error metadata.name: Duplicate value: "sla": is the name of another TaintEvictionPolicy of'
    )
    assert "f.yaml:2: document 1" in found


def test_profiles_of_two_namespaces_may_have_one_name(check):
    mine, theirs = (profile("p", toleration("Gt", "1"), app="web", space=space) for space in ("shop", "bank"))
    assert check(mine, theirs) == []
    assert len(check(mine, mine)) == 1


def test_a_named_pipe_is_not_waited_for(cli, samples):
    os.mkfifo("pipe")
    result = cli("validate", "pipe")
    assert (result.exit_code, result.stderr) == (2, "taintwarden: pipe: is a named pipe: write - for standard input\n")
