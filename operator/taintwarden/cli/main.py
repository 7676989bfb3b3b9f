"""The ``taintwarden`` command group; kubectl finds it as ``kubectl taintwarden``."""

from importlib.metadata import version

import click

from taintwarden.cli.demo import demo
from taintwarden.cli.doctor import doctor
from taintwarden.cli.explain import explain
from taintwarden.cli.guard import guard
from taintwarden.cli.pause import pause, resume
from taintwarden.cli.plan import plan
from taintwarden.cli.run import run
from taintwarden.cli.status import status
from taintwarden.cli.validate import validate


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(version("taintwarden"), prog_name="taintwarden")
def main() -> None:
    """Decide when pods must leave a node whose taints changed."""


main.add_command(run)
main.add_command(demo)
main.add_command(explain)
main.add_command(validate)
main.add_command(status)
main.add_command(plan)
main.add_command(doctor)
main.add_command(pause)
main.add_command(resume)
main.add_command(guard)
