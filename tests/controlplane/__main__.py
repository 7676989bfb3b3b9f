"""A cluster to try things on, until it is interrupted: the working cluster of the tests, nodes, and the operator.

Started by `make cluster`. Pods have no containers: a stand-in for kubelets says that they run.
"""

import os
import signal
import sys
from pathlib import Path

from controlplane.binaries import MissingBinariesError, binaries_folder
from controlplane.operator_process import EXECUTABLE, Operator
from controlplane.working_cluster import CONTROLLERS, WorkingCluster

FOR_PEOPLE = ("serviceaccount-controller", "namespace-controller")
"""People create and delete namespaces without the helpers of the tests."""
NODES = {"zone-a": 2, "zone-b": 2, "zone-c": 2}


def main() -> int:
    """Run it; the exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        path = os.pathsep.join(map(str, (EXECUTABLE.parent, binaries_folder())))
        with WorkingCluster(controllers=(*CONTROLLERS, *FOR_PEOPLE)) as cluster:
            cluster.apply_crds()
            cluster.apply_manifests()
            names = cluster.create_zones("node", NODES, {})
            with Operator(cluster.operator_kubeconfig(), cluster.folder):
                say(cluster, names, path)
                while True:
                    signal.pause()
    except MissingBinariesError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        return 0


def say(cluster: WorkingCluster, nodes: list[str], path: str) -> None:
    """What to type in another terminal."""
    log = Path(cluster.folder) / "taintwarden.log"
    sys.stdout.write(
        f"\nKubernetes {cluster.version()} with nodes {nodes[0]} to {nodes[-1]}, and the operator (log:\n{log}).\n"
        f"\nIn another terminal:\n\n  export KUBECONFIG={cluster.admin_kubeconfig} PATH={path}:$PATH\n\nCtrl-C ends.\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
