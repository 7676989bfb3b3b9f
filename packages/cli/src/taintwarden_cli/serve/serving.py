"""Runs a process that serves, and ends it with an exit code."""

import os
import sys
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NoReturn, TypeVar

import uvloop

from taintwarden.kube.errors import ConfigError, KubeError
from taintwarden.settings import CommonSettings, SettingsError
from taintwarden.telemetry.logs import configure_logs
from taintwarden_cli.lazy import imported
from taintwarden_cli.options import with_root_flags
from taintwarden_cli.output import fail

SettingsType = TypeVar("SettingsType", bound=CommonSettings)


def serve(target: str, load: Callable[..., SettingsType], flags: Mapping[str, object]) -> NoReturn:
    """Run a process until a signal stops it, and exit.

    Args:
        target: ``module:function`` that serves with the settings, and returns the exception that ended it, if any. Only
            this module is imported: the operator runs without the code that makes certificates.
        load: makes the settings from environment and flags.
        flags: values of the command line.

    """
    run: Callable[[SettingsType], Coroutine[Any, Any, BaseException | None]] = imported(target, with_rich=False)
    try:
        settings = load(os.environ, **with_root_flags(flags))
        configure_logs(settings.log_format, settings.log_level)
        failure = uvloop.run(run(settings))  # an eviction takes a seventh less CPU than on asyncio's own loop
    except (SettingsError, ConfigError) as error:
        fail(str(error), code=2)
    except KubeError as error:
        fail(f"the cluster cannot be used: {error}", code=1)
    sys.exit(1 if failure else 0)
