"""The workflow that publishes a release. It never ran: what can be seen without a forge is seen here."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from controlplane.binaries import ROOT
from deploy.rendering import CHART, RenderingError, chart, run, tool

FILE = ROOT / ".github" / "workflows" / "release.yml"
WORKFLOW = yaml.safe_load(FILE.read_text())
JOBS = WORKFLOW["jobs"]
JOB = JOBS["release"]
STEPS = [step for job in JOBS.values() for step in job["steps"]]
DIGEST = f"sha256:{'0' * 64}"


def lint(path: Path) -> None:
    """Without the programs that actionlint would use if they were there. Raises RenderingError."""
    run(tool("actionlint"), "-shellcheck=", "-pyflakes=", path)


def test_what_guards_main_is_what_a_developer_runs():
    workflow = yaml.safe_load((FILE.parent / "change.yml").read_text())
    assert workflow["permissions"] == {"contents": "read"}
    assert [one["run"] for one in workflow["jobs"]["guard"]["steps"] if "run" in one] == [".ci/run"]


def step(name: str) -> str:
    """The script of a step."""
    [script] = [one["run"] for one in JOB["steps"] if one.get("name") == name]
    return script


WORKFLOWS = sorted(FILE.parent.glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actionlint_finds_nothing(path):
    lint(path)


def test_actionlint_would_find_something(tmp_path):
    wrong = tmp_path / "release.yml"
    wrong.write_text(FILE.read_text().replace("steps.image.outputs", "steps.picture.outputs"))
    with pytest.raises(RenderingError, match='property "picture" is not defined'):
        lint(wrong)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_action_is_pinned_by_commit_and_named_by_version(path):
    uses = re.findall(r"uses: (.*)", path.read_text())
    steps = [one for job in yaml.safe_load(path.read_text())["jobs"].values() for one in job["steps"]]
    assert len(uses) == len([one for one in steps if "uses" in one]) > 2
    assert [one for one in uses if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []


def test_nothing_may_be_written_or_signed_but_by_one_job():
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert [name for name, job in JOBS.items() if "permissions" in job] == ["release"]
    assert JOB["permissions"].keys() == {"contents", "packages", "id-token", "attestations"}


def test_what_may_sign_runs_nothing_that_is_only_for_development():
    assert not [one for one in JOB["steps"] if re.search(r"\b(make|uv|pip|python)\b", one.get("run", ""))]
    assert not [one for one in JOB["steps"] if "setup-python" in one.get("uses", "")]


def test_no_job_with_secrets_runs_before_the_tests_have_passed():
    assert JOB["needs"] == ["verify", "rehearse"]
    assert JOBS["rehearse"]["needs"] == "files"
    others = str([job for name, job in JOBS.items() if name != "release"])
    assert "secrets." not in others
    assert "github.token" not in others


def test_the_image_is_that_of_the_dockerfile_for_two_architectures():
    builds = [one["with"] for one in JOB["steps"] if "build-push-action" in one.get("uses", "")]
    assert [one.get("target") for one in builds] == [None, "publisher"]
    for build in builds:
        assert (ROOT / build["file"]).samefile(ROOT / "deploy" / "Dockerfile")
        assert build["platforms"].split(",") == ["linux/amd64", "linux/arm64"]
        assert build["sbom"] is True


def test_the_targets_exist():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = [name for one in STEPS if "run" in one for name in re.findall(r"^make (.+)$", one["run"], re.M)]
    used = {word for names in named for word in names.split() if "=" not in word}
    assert used == {"check", "test", "audit", "release", "rehearsal"} <= set(targets)


@pytest.mark.parametrize(("tag", "goes_on"), [("v0.1.0", True), ("v0.2.0", False), ("0.1.0", False)])
def test_a_tag_that_is_not_the_version_ends_it(tmp_path, tag, goes_on):
    environment = {"GITHUB_REF_NAME": tag, "GITHUB_ENV": str(tmp_path / "env"), "PATH": "/usr/bin:/bin"}
    environment |= {"REGISTRY": "registry.example.com", "GITHUB_REPOSITORY": "Some/Where"}
    done = shell(step("Compare the tag with the version"), ROOT, environment)
    assert (done.returncode == 0) is goes_on
    if goes_on:
        assert (tmp_path / "env").read_text() == "VERSION=0.1.0\nIMAGE=registry.example.com/some/where\n"


def test_the_chart_that_is_published_names_the_images_that_are_published(tmp_path):
    """The step's own lines, as far as the archive."""
    shutil.copytree(CHART, tmp_path / "deploy" / "chart" / "taintwarden")
    script = step("Push and sign the chart, which names these images").partition("helm registry")[0]
    other = DIGEST.replace("0", "1")
    image = {"IMAGE": "registry.example.com/some/where", "DIGEST": DIGEST, "PUBLISHER": other, "VERSION": "0.1.0"}
    done = shell(script, tmp_path, image | {"PATH": f"{tool('helm').parent}:/usr/bin:/bin", "HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    named = [
        container["image"]
        for one in chart({"publisher.enabled": True}, chart=tmp_path / "dist" / "taintwarden-0.1.0.tgz")
        if one["kind"] == "Deployment"
        for container in one["spec"]["template"]["spec"]["containers"]
    ]
    ours, publisher = f"registry.example.com/some/where@{DIGEST}", f"registry.example.com/some/where-publisher@{other}"
    assert sorted(named) == sorted([ours, ours, publisher])
    meta = yaml.safe_load((tmp_path / "deploy" / "chart" / "taintwarden" / "Chart.yaml").read_text())
    listed = [one["image"] for one in yaml.safe_load(meta["annotations"]["artifacthub.io/images"])]
    assert listed == [ours, publisher]


def test_wheels_and_checksums_are_signed():
    script = step("Publish the release")
    assert "for file in SHA256SUMS *.whl; do cosign sign-blob" in script
    assert script.index("sha256sum") < script.index("sign-blob") < script.index("gh release create")


def test_who_may_write_the_base_image_builds_nothing_of_it():
    jobs = yaml.safe_load((FILE.parent / "base-image.yml").read_text())["jobs"]
    assert [name for name, job in jobs.items() if "permissions" in job] == ["renew"]
    assert "docker build " not in str(jobs["renew"])


def test_the_base_image_is_renewed_within_its_series():
    series = yaml.safe_load((FILE.parent / "base-image.yml").read_text())["env"]["SERIES"]
    python, _, rest = series.partition("-")
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()
    assert re.search(rf"^ARG PYTHON=python:{re.escape(python)}\.\d+-{rest}@sha256:[0-9a-f]{{64}}$", dockerfile, re.M)


def shell(script: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a script as the forge runs a step."""
    return subprocess.run(
        ["/bin/bash", "-e", "-o", "pipefail", "-c", script],
        check=False, cwd=folder, env=environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
