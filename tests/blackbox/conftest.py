"""One control plane and one operator for the stories of a process. Every story has objects of its own."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from blackbox.box import Box, NewBox
from chaos.plane import audited, judging
from controlplane import ControlPlane, EvictionDenial, MissingBinariesError, Operator
from controlplane.binaries import binaries_folder
from controlplane.comparisons import known_gates
from e2e.pod_watch import PodWatch

NO_CLUSTER = 3  # exit code: neither passed (0) nor failed (1)
RUN = uuid.uuid4().hex[:6]


def pytest_sessionstart(session: pytest.Session) -> None:
    """Without a control plane there is nothing to judge: skipping would look like success."""
    if not session.config.option.collectonly:
        try:
            binaries_folder()
        except MissingBinariesError as error:
            pytest.exit(str(error), returncode=NO_CLUSTER)


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """etcd and the API server, with the definitions and the rights as shipped; at the end the law judges."""
    folder = tmp_path_factory.mktemp("control-plane")
    with audited(ControlPlane(folder, feature_gates=known_gates())) as started:
        started.apply_crds()
        started.apply_manifests()
        # A story moves the clock of a process, which follows the header Date then: that has whole seconds.
        with judging(started, slots=64, overall=10_000.0, skew=1.0):
            yield started


@pytest.fixture(scope="session")
def operator(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """The operator, which leads. A story that ends it starts it again."""
    args = ["--max-evictions-per-second=10000"]
    with Operator(control_plane.operator_kubeconfig(), tmp_path_factory.mktemp("operator"), args=args) as started:
        started.wait_leading()
        yield started


@pytest.fixture(scope="session")
def watch(control_plane: ControlPlane) -> Iterator[PodWatch]:
    """Every pod of the stories."""
    with PodWatch(control_plane.client, RUN) as watch:
        yield watch


@pytest.fixture(scope="session")
def denial(control_plane: ControlPlane) -> EvictionDenial:
    """Evictions can be denied by namespace. It ends with the control plane."""
    found = EvictionDenial(control_plane.client)
    found.install()
    return found


@pytest.fixture(scope="session")
def new_box(control_plane: ControlPlane, operator: Operator, watch: PodWatch) -> NewBox:
    """The scene of a story, removed at its end."""

    @contextmanager
    def new() -> Iterator[Box]:
        name = f"box-{uuid.uuid4().hex[:8]}"
        box = Box(control_plane.client, operator, watch, RUN, name, name, control_plane=control_plane)
        box.cluster.create_namespace(name)
        try:
            yield box
        finally:
            box.clear()

    return new


@pytest.fixture
def box(new_box: NewBox) -> Iterator[Box]:
    """The scene of one story."""
    with new_box() as box:
        yield box
