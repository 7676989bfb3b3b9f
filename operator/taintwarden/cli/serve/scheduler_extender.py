"""``taintwarden scheduler-extender``: what kube-scheduler asks about extended tolerations and node affinity."""

import click

from taintwarden.cli.importing import without_rich
from taintwarden.cli.serve.serving import connection_options, log_options, operator_options, serve, served_options
from taintwarden.settings import ExtenderSettings, load_extender_settings


@click.command(name="scheduler-extender", short_help="Run the scheduler extender.")
@connection_options
@served_options(ExtenderSettings())
@operator_options
@log_options
def scheduler_extender(**flags: object) -> None:
    """Tell kube-scheduler which nodes suit a pod, by its extended tolerations and node affinity.

    A KubeSchedulerConfiguration names it in `extenders`. It evicts no pod and changes no pod or node. Every flag is
    also an environment variable, for example TAINTWARDEN_WEBHOOK_PORT=9443.

    Exit codes: 0 stopped as asked, 1 the cluster cannot be used or a fault, 2 wrong flags or kubeconfig.
    """
    # The server takes a while to import, and `--help` does not need it.
    with without_rich():
        from taintwarden.placement import extender_process  # noqa: PLC0415

    serve(load_extender_settings, extender_process.run, flags)
