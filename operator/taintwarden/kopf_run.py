"""What ``kopf run -A -m taintwarden.kopf_run`` loads: the operator, with settings from the environment."""

import os

import kopf

from taintwarden.app import App
from taintwarden.handlers.lifecycle import run_with_kopf
from taintwarden.handlers.watching import watch_policies, watch_profiles
from taintwarden.settings import load_settings
from taintwarden.telemetry.logs import configure_logs


async def _from_environment() -> App:
    settings = load_settings(os.environ)
    configure_logs(settings.log_format, settings.log_level)
    return await App.connect(settings)


_REGISTRY = kopf.get_default_registry()
run_with_kopf(_REGISTRY, _from_environment)
watch_policies(_REGISTRY)
watch_profiles(_REGISTRY)
