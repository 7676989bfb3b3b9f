"""``taintwarden scheduler-extender``: what kube-scheduler asks about extended tolerations and node affinity."""

import click

from taintwarden.cli.lazy import imported
from taintwarden.cli.serve.serving_options import connection_options, log_options, operator_options, served_options
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
    serve = imported("taintwarden.cli.serve.serving:serve", with_rich=False)
    serve("taintwarden.placement.extender_process:run", load_extender_settings, flags)
