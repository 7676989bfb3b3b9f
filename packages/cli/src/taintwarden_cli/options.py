"""Options that several commands share. None needs the cluster's client, which takes a second to import."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., None])


class Duration(click.ParamType[float]):
    """A duration such as ``90s``, ``30m``, ``1h30m`` or a number of seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The duration in seconds."""
        if isinstance(value, float):
            return value
        found = re.fullmatch(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?", str(value))
        parts = [int(part or 0) for part in found.groups()] if found and value else []
        seconds = sum(part * size for part, size in zip(parts, (86_400, 3_600, 60, 1), strict=False))
        if not 0 < seconds <= 30 * 86_400:
            self.fail(f"{value!r} is not a time up to 30 days: write for example 90s, 30m or 1h", param, ctx)
        return float(seconds)


class Seconds(click.FloatRange):
    """A number of seconds. ``nan`` is rejected: it passes the range check, since every comparison with it is false."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """A finite number in the range."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return number


def with_root_flags(flags: Mapping[str, object]) -> dict[str, object]:
    """The flags of a command, with ``--context`` and ``--kubeconfig`` before its name, as for a plugin of kubectl."""
    root = click.get_current_context().find_root().params
    inherited = {name: root.get(name) for name in ("context", "kubeconfig") if flags.get(name) is None}
    return {**flags, **inherited}


def yes_option(command: Command) -> Command:
    """Add ``--yes`` to a command that asks for confirmation before it makes a change."""
    return click.option("--yes", is_flag=True, help="Do not ask.")(command)


def operator_option(command: Command) -> Command:
    """Add ``--operator-namespace`` to a command, as the setting ``namespace``."""
    text = "Namespace of the operator and its Lease. [default: taintwarden-system]"
    return click.option("--operator-namespace", "namespace", metavar="NAMESPACE", help=text)(command)


def gate_options(command: Command) -> Command:
    """Add ``--numeric-operators`` and ``--semver-operators`` to a command."""
    numeric = click.option(
        "--numeric-operators/--no-numeric-operators", default=None, help="Whether Gt and Lt may match. [default: on]"
    )
    semver = "Whether Semver* may match. [default: on]"
    return numeric(click.option("--semver-operators/--no-semver-operators", default=None, help=semver)(command))


def cluster_options(command: Command) -> Command:
    """Add ``--kubeconfig`` and ``--context`` to a command."""
    context = click.option("--context", help="Context of the kubeconfig. Default: its current one.")
    kubeconfig = click.option("--kubeconfig", type=click.Path(), help="Kubeconfig file. Default: as kubectl.")
    return kubeconfig(context(command))
