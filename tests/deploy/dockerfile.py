"""deploy/Dockerfile as far as it can be played without a container engine: its build stage, in folders of its own."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from controlplane.binaries import ROOT

DOCKERFILE = ROOT / "deploy" / "Dockerfile"
IGNORED = ROOT / ".dockerignore"  # BuildKit and the classic builder both know this one
SECONDS = 300


@dataclass
class Stage:
    """One FROM with what follows it, in order: (instruction, rest of the line)."""

    base: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def last(self, instruction: str) -> str:
        return [rest for name, rest in self.steps if name == instruction][-1]

    def exec_form(self, instruction: str) -> list[str]:
        """ENTRYPOINT or CMD in the form that needs no shell."""
        words: list[str] = json.loads(self.last(instruction))
        return words

    @property
    def environment(self) -> dict[str, str]:
        pairs = " ".join(rest for name, rest in self.steps if name == "ENV").split()
        return dict(pair.split("=", 1) for pair in pairs)


def stages() -> list[Stage]:
    """The stages, with the arguments before them filled in."""
    lines = [line for line in DOCKERFILE.read_text().splitlines() if not line.startswith("#")]
    arguments: dict[str, str] = {}
    found: list[Stage] = []
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        instruction, _, rest = line.strip().partition(" ")
        if instruction == "ARG" and not found:
            name, _, value = rest.partition("=")
            arguments[name] = value
        elif instruction == "FROM":
            name = rest.split()[0]
            found.append(Stage(re.sub(r"\$\{(\w+)\}", lambda match: arguments[match[1]], name)))
        elif instruction:
            found[-1].steps.append((instruction, rest.strip()))
    return found


def play(stage: Stage, root: Path) -> None:
    """Carry the stage out below `root`, which stands for `/`. uv is the one of this environment."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("UV_", "VIRTUAL_ENV", "PYTHON"))},
        **{name: f"{root}{value}" if value.startswith("/") else value for name, value in stage.environment.items()},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "UV_PYTHON": sys.executable,
    }
    work = root
    for instruction, rest in stage.steps:
        if instruction == "WORKDIR":
            work = root / rest.lstrip("/")
            work.mkdir(parents=True, exist_ok=True)
        elif instruction == "COPY":
            *sources, target = rest.split()
            for source in sources:
                copy(source, work / target / ("" if len(sources) == 1 else source))
        elif instruction == "RUN" and not rest.startswith("pip install"):
            done = subprocess.run(
                ["/bin/sh", "-c", rest], check=False, cwd=work, env=environment, capture_output=True, text=True,
                timeout=SECONDS,
            )  # fmt: skip
            assert done.returncode == 0, f"RUN {rest}\n{done.stdout}{done.stderr}"


def copy(source: str, target: Path) -> None:
    """Copy the files that the engine would find in its context: those that the ignore file allows."""
    lines = IGNORED.read_text().splitlines()
    assert lines[0] == "*"
    assert f"!{source}" in lines, f"{source} is not part of the build's context"
    path = ROOT / source
    target.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.copytree(path, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(path, target)
