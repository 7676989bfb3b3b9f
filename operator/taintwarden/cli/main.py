"""The ``taintwarden`` command group; kubectl finds it as ``kubectl taintwarden``."""

import click

from taintwarden import __version__
from taintwarden.cli.lazy import CommandEntry, LazyGroup

_COMMANDS = {
    "run": CommandEntry("taintwarden.cli.serve.commands:run", "Run the operator."),
    "webhook": CommandEntry("taintwarden.cli.serve.commands:webhook", "Run the admission webhooks."),
    "webhook-trust": CommandEntry(
        "taintwarden.cli.serve.commands:webhook_trust", "Let the API servers trust the admission webhooks."
    ),
    "scheduler-extender": CommandEntry(
        "taintwarden.cli.serve.commands:scheduler_extender", "Run the scheduler extender."
    ),
    "publisher": CommandEntry(
        "taintwarden.cli.publisher:publisher", "Publish values of Prometheus as taints of nodes."
    ),
    "demo": CommandEntry("taintwarden.cli.demo:demo", "Show the operator at work on a cluster in this process."),
    "explain": CommandEntry("taintwarden.cli.explain.command:explain", "Say why pods stay or leave, and when."),
    "init": CommandEntry("taintwarden.cli.files.commands:init", "Print a first policy and profile."),
    "validate": CommandEntry(
        "taintwarden.cli.files.commands:validate", "Check policies, profiles, pods and nodes in files."
    ),
    "status": CommandEntry("taintwarden.cli.status.command:status", "Show the status of policies."),
    "top": CommandEntry("taintwarden.cli.top.command:top", "Show nodes, pods, limits and Events live."),
    "history": CommandEntry(
        "taintwarden.cli.status.history_command:history", "Show what happened lately, as a timeline."
    ),
    "plan": CommandEntry("taintwarden.cli.plan.command:plan", "Show what follows from changed taints."),
    "doctor": CommandEntry("taintwarden.cli.doctor.command:doctor", "Find what is wrong or surprising in a cluster."),
    "pause": CommandEntry("taintwarden.cli.change.commands:pause", "Stop policies."),
    "resume": CommandEntry("taintwarden.cli.change.commands:resume", "Resume paused policies."),
    "placement": CommandEntry("taintwarden.cli.change.commands:placement", "Print and remove labels of placement."),
    "guard": CommandEntry("taintwarden.cli.change.commands:guard", "Release the pods that a tripped guard holds."),
}


@click.group(
    cls=LazyGroup,
    entries=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="taintwarden")
@click.option("--context", help="Context of the kubeconfig, for any command that reads a cluster.")
@click.option("--kubeconfig", type=click.Path(), help="Kubeconfig file, likewise.")
def main(**_: object) -> None:
    """Decide when pods must leave a node whose taints changed."""
