"""The ``taintwarden`` command group; kubectl finds it as ``kubectl taintwarden``."""

import click

from taintwarden import __version__
from taintwarden_cli.lazy import CommandEntry, LazyGroup

_COMMANDS = {
    "run": CommandEntry("taintwarden_cli.serve.serve_commands:run", "Run the operator."),
    "webhook": CommandEntry("taintwarden_cli.serve.serve_commands:webhook", "Run the admission webhooks."),
    "webhook-trust": CommandEntry(
        "taintwarden_cli.serve.serve_commands:webhook_trust", "Let the API servers trust the admission webhooks."
    ),
    "scheduler-extender": CommandEntry(
        "taintwarden_cli.serve.serve_commands:scheduler_extender", "Run the scheduler extender."
    ),
    "publisher": CommandEntry(
        "taintwarden_publisher.command:publisher",
        "Publish values of Prometheus as taints of nodes.",
        "pip install 'taintwarden[publisher]', or use its own image",
    ),
    "demo": CommandEntry(
        "taintwarden_demo.command:demo",
        "Show the operator at work on a cluster in this process.",
        "pip install 'taintwarden[demo]', or make demo in a clone",
    ),
    "explain": CommandEntry("taintwarden_cli.explain.command:explain", "Say why pods stay or leave, and when."),
    "init": CommandEntry("taintwarden_cli.files.file_commands:init", "Print a first policy."),
    "validate": CommandEntry(
        "taintwarden_cli.files.file_commands:validate", "Check policies, profiles and pods in files."
    ),
    "status": CommandEntry("taintwarden_cli.status.command:status", "Show the status of policies."),
    "top": CommandEntry("taintwarden_cli.status.command:top", "Show the status of policies live."),
    "history": CommandEntry("taintwarden_cli.status.command:history", "Show what happened lately, as a timeline."),
    "plan": CommandEntry("taintwarden_cli.plan.command:plan", "Show what follows from changed taints."),
    "doctor": CommandEntry("taintwarden_cli.doctor.command:doctor", "Find what is wrong or surprising in a cluster."),
    "pause": CommandEntry("taintwarden_cli.change.change_commands:pause", "Stop policies."),
    "resume": CommandEntry("taintwarden_cli.change.change_commands:resume", "Resume paused policies."),
    "placement": CommandEntry(
        "taintwarden_cli.change.change_commands:placement", "Print and remove labels of placement."
    ),
    "guard": CommandEntry(
        "taintwarden_cli.change.change_commands:guard", "Release the pods that a tripped guard holds."
    ),
}


@click.group(
    cls=LazyGroup, entries=_COMMANDS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="taintwarden")
@click.option("--context", help="Context of the kubeconfig, for any command that reads a cluster.")
@click.option("--kubeconfig", type=click.Path(), help="Kubeconfig file, for the same commands.")
def main(**_: object) -> None:
    """Decide when pods must leave a node whose taints changed."""
