"""The image, as far as it can be seen without a container engine: its build stage is played, its result runs."""

import re
import shutil
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from controlplane.binaries import ROOT
from deploy.dockerfile import Stage, play, stages
from deploy.test_supply_chain import locked_for_the_image, normal

READ_ONLY = Path(__file__).with_name("read_only")
SECONDS = 60
[BUILD, PUBLISHER_BUILD, PUBLISHER, FINAL] = stages()
PUBLISHER_TEMPLATE = yaml.safe_load((ROOT / "deploy" / "components" / "publisher" / "deployment.yaml").read_text())[
    "spec"
]["template"]["spec"]
TEMPLATE = yaml.safe_load((ROOT / "deploy" / "base" / "deployment.yaml").read_text())["spec"]["template"]["spec"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment with the wheel, which the last stage copies. The sources are gone by then."""
    root = tmp_path_factory.mktemp("image")
    play(BUILD, root)
    (root / "src").rename(root / "gone")
    return root / "opt" / "taintwarden"


@pytest.fixture(scope="module")
def publisher(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment of the publisher's image, whose stage continues from the first one's files."""
    before, root = installed.parents[1], tmp_path_factory.mktemp("publisher") / "image"
    shutil.copytree(before, root, symlinks=True)
    (root / "gone").rename(root / "src")
    command = root / "opt" / "taintwarden" / "bin" / "taintwarden"
    command.write_text(command.read_text().replace(str(before), str(root)))
    settings = [step for step in BUILD.steps if step[0] in ("ENV", "WORKDIR")]
    play(Stage(BUILD.base, [*settings, *PUBLISHER_BUILD.steps]), root)
    (root / "src").rename(root / "gone")
    return root / "opt" / "taintwarden"


def run(installed: Path, *words: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """A command of the image with nothing but its own environment, on a file system that refuses to be written."""
    variables = {name: value for name, value in FINAL.environment.items() if name != "PATH"}
    variables |= {"PATH": f"{installed / 'bin'}:/usr/bin:/bin", "PYTHONPATH": str(READ_ONLY)} | (environment or {})
    return subprocess.run(
        [installed / "bin" / words[0], *words[1:]],
        check=False, env=variables, cwd="/", capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip


def test_the_file_system_of_these_tests_cannot_be_written(installed, tmp_path):
    done = run(installed, "python", "-c", f"open({str(tmp_path / 'x')!r}, 'w')")
    assert "Read-only file system" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["--version"]])
def test_the_command_runs(installed, words):
    done = run(installed, "taintwarden", *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage" in done.stdout or version("taintwarden") in done.stdout


@pytest.mark.parametrize("words", [FINAL.exec_form("CMD"), ["webhook"], ["scheduler-extender"]])
def test_a_process_comes_as_far_as_the_cluster_it_does_not_find(installed, words):
    """All imports of a real start, kopf's included."""
    done = run(installed, *FINAL.exec_form("ENTRYPOINT"), *words, environment={"KUBECONFIG": "/none"})
    assert done.returncode == 2
    assert "cannot use /none: there is no such file" in done.stderr
    assert "Read-only" not in done.stderr


def test_the_wheel_is_installed_and_not_the_sources(installed):
    code = "import taintwarden; print(taintwarden.__file__)"
    assert Path(run(installed, "python", "-c", code).stdout.strip()).is_relative_to(installed)


def test_what_is_installed_is_what_is_locked_and_nothing_else(installed):
    found = [path.name.removesuffix(".dist-info") for path in installed.glob("lib/python3*/site-packages/*.dist-info")]
    versions = {normal(name): version for name, _, version in (one.rpartition("-") for one in found)}
    assert versions.pop("taintwarden") == version("taintwarden")
    assert versions == locked_for_the_image()


def test_neither_the_demo_nor_its_api_server_is_installed(installed):
    packages = installed.glob("lib/python3*/site-packages/*")
    assert not {"localcluster", "taintwarden_demo"} & {path.name for path in packages}
    done = run(installed, "taintwarden", "demo", "--keep")
    assert (done.returncode, done.stdout) == (1, "")
    assert "pip install 'taintwarden[demo]'" in done.stderr


def test_the_publisher_is_not_installed(installed):
    assert not list(installed.glob("lib/python3*/site-packages/taintwarden_publisher"))
    done = run(installed, "taintwarden", "publisher", "--http-port", "1")
    assert (done.returncode, done.stdout) == (1, "")
    assert "pip install 'taintwarden[publisher]'" in done.stderr


def test_every_module_is_compiled(installed):
    [package] = installed.glob("lib/python3*/site-packages/taintwarden")
    assert len(list(package.rglob("*.pyc"))) == len(list(package.rglob("*.py")))


def test_compiled_modules_are_the_same_in_every_build(installed):
    """No time of a file is in it. By PEP 552 the second word is 1: a hash that Python does not check at run time."""
    compiled = list(installed.glob("lib/**/*.pyc"))
    assert len(compiled) > 1000
    assert {path.read_bytes()[4:8] for path in compiled} == {b"\x01\0\0\0"}
    assert not list(installed.rglob("uv_cache.json"))


def test_the_publishers_image_comes_as_far_as_the_cluster_it_does_not_find(publisher):
    """All imports of a real start, those of kopf and of the official client included."""
    words = [*PUBLISHER.exec_form("ENTRYPOINT"), *PUBLISHER.exec_form("CMD")]
    done = run(publisher, *words, environment={"KUBECONFIG": "/none"})
    assert done.returncode == 2
    assert "cannot use /none" in done.stderr
    assert "Read-only" not in done.stderr


def test_in_the_publishers_image_is_what_is_locked_and_nothing_else(publisher):
    found = [path.name.removesuffix(".dist-info") for path in publisher.glob("lib/python3*/site-packages/*.dist-info")]
    versions = {normal(name): version for name, _, version in (one.rpartition("-") for one in found)}
    ours = {name: versions.pop(name) for name in ("taintwarden", "taintwarden-publisher")}
    assert set(ours.values()) == {version("taintwarden")}
    assert versions == locked_for_the_image("--extra=publisher")
    assert not list(publisher.rglob("uv_cache.json"))


# -- what is written in it --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", [BUILD, PUBLISHER, FINAL], ids=["build", "publisher", "final"])
def test_the_base_is_pinned_by_digest(stage: Stage):
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+@sha256:[0-9a-f]{64}", stage.base)
    assert stage.base == BUILD.base


def test_the_python_of_the_base_is_one_that_the_project_names():
    python = re.match(r"python:(3\.\d+)", FINAL.base)
    assert python is not None
    assert f"Programming Language :: Python :: {python[1]}" in (ROOT / "pyproject.toml").read_text()


def test_nothing_is_installed_without_its_hash():
    installs = [
        words
        for name, rest in (*BUILD.steps, *PUBLISHER_BUILD.steps)
        if name == "RUN"
        for words in rest.split("&&")
        if re.search(r"\b(pip install|uv build)\b", words)
    ]
    assert len(installs) == 7
    assert [words for words in installs if "--require-hashes" not in words and "--no-index" not in words] == []


def test_the_user_is_the_one_that_the_deployment_names():
    context = TEMPLATE["securityContext"]
    assert FINAL.last("USER") == f"{context['runAsUser']}:{context['runAsGroup']}"
    assert context["runAsNonRoot"]


def test_the_deployment_starts_what_the_image_starts():
    [container] = TEMPLATE["containers"]
    assert container["args"] == FINAL.exec_form("CMD")
    assert "command" not in container
    assert FINAL.exec_form("ENTRYPOINT") == ["taintwarden"]


def test_the_labels_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    labels = dict(pair.split("=", 1) for pair in FINAL.last("LABEL").split())
    assert labels == {
        "org.opencontainers.image.title": project["name"],
        "org.opencontainers.image.version": project["version"],
        "org.opencontainers.image.revision": "${REVISION}",
        "org.opencontainers.image.licenses": project["license"],
    }


def test_the_last_stage_takes_nothing_but_the_environment():
    assert [rest for name, rest in FINAL.steps if name in ("COPY", "ADD", "RUN")] == [
        "--from=build /opt/taintwarden /opt/taintwarden"
    ]


def test_the_publishers_stage_differs_in_nothing_but_what_it_takes_and_starts():
    text = (
        str(PUBLISHER.steps)
        .replace("publisher-build", "build")
        .replace("title=taintwarden-publisher", "title=taintwarden")
    )
    assert text.replace('["publisher"]', '["run"]') == str(FINAL.steps)
    [container] = PUBLISHER_TEMPLATE["containers"]
    assert container["args"] == PUBLISHER.exec_form("CMD")
