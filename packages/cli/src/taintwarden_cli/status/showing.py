"""Carries out ``status``."""

import sys
import time

from taintwarden_cli.cluster_session import ask, settings_of
from taintwarden_cli.data_output import write_data
from taintwarden_cli.output import fail, write
from taintwarden_cli.rehearsal.deployments import unready_webhook
from taintwarden_cli.rehearsal.liveness import read_liveness
from taintwarden_cli.rehearsal.reading import stored_policies
from taintwarden_cli.rehearsal.session import Session
from taintwarden_cli.rendering import render
from taintwarden_cli.status.policy_status import StatusSummary, summarize
from taintwarden_cli.status.policy_status_table import parts

FINE, ERROR, PERSON = 0, 1, 10


def show(policies: tuple[str, ...], utc: bool, output: str, **flags: object) -> None:
    """Carry out the command."""
    settings = settings_of(flags)
    try:
        found = ask(settings, lambda session: _look(session, settings.namespace, policies))
    except LookupError as error:
        fail(str(error), ERROR)
    if output in ("table", "wide"):
        details = output == "wide" or bool(policies) or len(found.policies) == 1
        write(render(*parts(found, details=details, utc=utc)))
    else:
        write_data(found, output)
    sys.exit(PERSON if found.needs_a_person else FINE)


async def _look(session: Session, namespace: str, names: tuple[str, ...]) -> StatusSummary:
    policies, now = await stored_policies(session), time.time()
    found = summarize(policies, names, now, await read_liveness(session, namespace, policies, now))
    found.problem = found.problem or await unready_webhook(session, namespace)
    return found
