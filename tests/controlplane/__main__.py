"""A cluster to try things on, until it is interrupted: that of the tests with nodes, operator, webhook, a Deployment.

Started by `make cluster`. Pods have no containers: a stand-in for kubelets says that they run.
"""

import argparse
import os
import signal
import sys

from controlplane.binaries import MissingBinariesError, binaries_folder
from controlplane.operator_process import EXECUTABLE
from controlplane.to_try import NAMESPACE, ToTry, opened
from monitoring.promtool import MissingPrometheusError

PLAIN = f"The policy is sla, the Deployment {NAMESPACE}/web.\n"
SLO = f"""The policy is sla, the Deployments are {NAMESPACE}/web and {NAMESPACE}/batch. An exporter has the availability
of each node, and Prometheus scrapes it. The publisher waits for a TaintPublisher: see docs/slo-tutorial.md.
"""


def main() -> int:
    """Run it; the exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parser = argparse.ArgumentParser(prog="make cluster ARGS=", description=__doc__)
    parser.add_argument(
        "--slo", action="store_true", help="values of nodes come from a real Prometheus, by the publisher"
    )
    slo: bool = parser.parse_args().slo
    try:
        with opened(slo=slo) as found:
            say(found, slo=slo)
            while True:
                signal.pause()
    except (MissingBinariesError, MissingPrometheusError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        return 0


def say(found: ToTry, *, slo: bool) -> None:
    """Print the commands to type in another terminal."""
    cluster, path = found.cluster, os.pathsep.join(map(str, (EXECUTABLE.parent, binaries_folder())))
    words = {"KUBECONFIG": cluster.admin_kubeconfig, "PATH": f"{path}:$PATH", **found.variables}
    sys.stdout.write(
        f"\nKubernetes {cluster.version()} with nodes {found.nodes[0]} to {found.nodes[-1]}, operator and webhook.\n"
        f"Logs are in {cluster.folder}.\n{SLO if slo else PLAIN}\nIn another terminal:\n\n"
        f"  export {' '.join(f'{name}={value}' for name, value in words.items())}\n\nCtrl-C ends.\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
