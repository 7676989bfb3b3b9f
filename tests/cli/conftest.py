"""The command line in the process, and sample files to use it on."""

import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.policies import Run, running
from cli.terminals import terminal
from localcluster import LocalCluster
from taintwarden_cli.main import main

SAMPLES = Path(__file__).parent / "samples"
Cli = Callable[..., Result]


@pytest.fixture(name="terminal")
def _terminal() -> Iterator[None]:
    """Output goes to a terminal of 100 columns."""
    with terminal():
        yield


@pytest.fixture
def narrow() -> Iterator[int]:
    """Output goes to a terminal of so many columns."""
    with terminal(60):
        yield 60


@pytest.fixture
def cli() -> Cli:
    """Run `taintwarden` with these arguments."""

    def run(*args: str, stdin: str | bytes | None = None, env: dict[str, str] | None = None) -> Result:
        result = CliRunner().invoke(main, list(args), input=stdin, env=env)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
async def run(cluster: LocalCluster, cli: Cli, tmp_path: Path) -> AsyncIterator[Run]:
    """Run `taintwarden` with these arguments on the cluster of a module."""
    async with running(cluster, cli, tmp_path) as run:
        yield run


@pytest.fixture
def samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sample files in the current folder, and `cluster.yaml`, which is all of them in one."""
    for path in SAMPLES.glob("*.yaml"):
        shutil.copy(path, tmp_path)
    parts = [path.read_text() for path in sorted(SAMPLES.glob("*.yaml"))]
    (tmp_path / "cluster.yaml").write_text("---\n".join(parts))
    monkeypatch.chdir(tmp_path)
    return tmp_path
