"""Fixtures of the end-to-end tests: a real control plane and the operator as a process. No cluster, no green run."""

import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

from api.policy_cases import policy
from chaos.plane import audited
from controlplane import (
    Cluster,
    ControlPlane,
    MissingBinariesError,
    Target,
    Webhook,
    WorkingCluster,
    webhook_setup,
)
from controlplane.binaries import binaries_folder
from controlplane.comparisons import known_gates
from controlplane.leftovers import nothing_left, removed_afterwards
from controlplane.target import ForbiddenContextError, check_context, existing_cluster
from controlplane.working_cluster import CONTROLLERS, OWNERS
from e2e.limit_scenes import LimitScene
from e2e.stories import RunningStories, running_stories

# Without it the server refuses Gt and Lt in spec.tolerations.
FEATURE_GATES = known_gates()
# Modules that share the working cluster, by the beginning of their names.
SHARING = ("test_limits", "test_placement_requirements", "test_replace_first")
SHARED: pytest.StashKey[ExitStack] = pytest.StashKey()
"""Contexts that are closed after the last of these modules."""
NO_CLUSTER = 3  # exit code: neither passed (0) nor failed (1)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Say before any test that there is nothing to test against: skipping would look like success.

    Processes among which the tests are divided are not started before that.
    """
    kubeconfig, context = session.config.getoption("--kubeconfig"), session.config.getoption("--context")
    if session.config.option.collectonly:
        return
    if kubeconfig and session.config.getoption("numprocesses"):
        raise pytest.UsageError("operators of two processes would take turns on one cluster: --numprocesses 0")
    try:
        if kubeconfig:
            check_context(context, os.environ)
        else:
            binaries_folder()
    except (MissingBinariesError, ForbiddenContextError) as error:
        pytest.exit(str(error), returncode=NO_CLUSTER)


def together(path: str) -> str:
    """Return the group of a module: itself, or all modules that share the working cluster."""
    return "shared" if Path(path).stem.startswith(SHARING) else path


class ModulesTogether(LoadFileScheduling):
    """How processes divide the tests."""

    def _split_scope(self, nodeid: str) -> str:
        return together(super()._split_scope(nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ModulesTogether:
    """In the order of the collection, which is not that of the number of tests."""
    config.option.loadscopereorder = False
    return ModulesTogether(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Modules that may take longest first, so that no process has a long one left when the others are done.

    Modules that stay together are one after the other also in a single process.
    """
    for item in items:
        if "working_cluster" in getattr(item, "fixturenames", ()) and not item.path.stem.startswith(SHARING):
            raise pytest.UsageError(f"{item.path.name} uses the shared working cluster and is not one of {SHARING}")
    seconds: dict[str, float] = {}
    groups: dict[str, float] = {}
    for item in items:
        mark = item.get_closest_marker("timeout")
        path = str(item.path)
        seconds[path] = max(seconds.get(path, 0), mark.args[0] if mark else 0)
        groups[together(path)] = max(groups.get(together(path), 0), seconds[path])
    order = {group: number for number, group in enumerate(sorted(groups, key=lambda group: -groups[group]))}
    items.sort(key=lambda item: (order[together(str(item.path))], -seconds[str(item.path)]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """The working cluster ends after its last module: without any work it takes an eighth of a core."""
    try:
        return (yield)
    finally:
        if nextitem is None or together(str(nextitem.path)) != together(str(item.path)):
            item.config.stash.setdefault(SHARED, ExitStack()).close()


@pytest.fixture(scope="session")
def bare_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A cluster without any object of Taintwarden; logs of its processes are in pytest's temporary folder."""
    folder = tmp_path_factory.mktemp("control-plane")
    if kubeconfig := request.config.getoption("--kubeconfig"):
        target = existing_cluster(kubeconfig, request.config.getoption("--context"), folder)
        with nothing_left(target.client):
            yield target
        target.client.close()
    else:
        with audited(ControlPlane(folder, feature_gates=FEATURE_GATES)) as started:
            yield started


@pytest.fixture(scope="session")
def control_plane(bare_cluster: Target) -> Iterator[Target]:
    """The cluster of this session with the CRDs and the operator's rights as shipped."""
    bare_cluster.apply_crds()
    if isinstance(bare_cluster, ControlPlane):  # ends with its processes
        bare_cluster.apply_manifests()
        yield bare_cluster
    else:
        with removed_afterwards(bare_cluster.client, bare_cluster.apply_manifests):
            yield bare_cluster


@pytest.fixture(scope="session")
def own_control_plane(control_plane: Target) -> ControlPlane:
    """The control plane for tests that stop servers or start controllers, which a foreign cluster does not allow."""
    if not isinstance(control_plane, ControlPlane):
        pytest.skip("needs a control plane of its own, not --kubeconfig")
    return control_plane


@contextmanager
def started_working_cluster(
    request: pytest.FixtureRequest, folder: Path, gates: Mapping[str, bool] = FEATURE_GATES, **more: Any
) -> Iterator[WorkingCluster]:
    """A control plane with controllers, scheduler and kubelets, and with the CRDs and rights as shipped."""
    if request.config.getoption("--kubeconfig"):
        pytest.skip("needs a control plane of its own, not --kubeconfig")
    with audited(WorkingCluster(folder, feature_gates=gates, **more)) as started:
        started.apply_crds()
        started.apply_manifests()
        yield started


@pytest.fixture(scope="session")
def working_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WorkingCluster]:
    """A cluster with controllers of budgets, Deployments and StatefulSets, on which the limits' operator leads."""
    shared, folder = request.config.stash.setdefault(SHARED, ExitStack()), tmp_path_factory.mktemp("working-cluster")
    controllers = (*CONTROLLERS, "statefulset-controller")
    yield shared.enter_context(started_working_cluster(request, folder, controllers=controllers))
    shared.close()


@pytest.fixture(scope="module")
def own_working_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WorkingCluster]:
    """A working cluster for a module whose own operator has to lead."""
    with started_working_cluster(request, tmp_path_factory.mktemp("own-working-cluster")) as started:
        yield started


@pytest.fixture(scope="module")
def populated_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WorkingCluster]:
    """A working cluster with the controllers of every kind that creates pods."""
    folder = tmp_path_factory.mktemp("populated-cluster")
    with started_working_cluster(request, folder, controllers=(*CONTROLLERS, *OWNERS)) as started:
        yield started


@pytest.fixture(scope="session")
def running_limits(
    request: pytest.FixtureRequest, working_cluster: WorkingCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningStories]:
    """The stories about limits of all modules (their STORIES, under their POLICIES), played side by side."""
    items = [item for item in request.session.items if "running_limits" in getattr(item, "fixturenames", ())]
    modules = list(dict.fromkeys(item.module for item in items))
    stories = [story for module in modules for story in module.STORIES]
    specs = {name: spec for module in modules for name, spec in module.POLICIES.items()}
    scene, folder = partial(LimitScene, ground=working_cluster), tmp_path_factory.mktemp("limits")
    shared = request.config.stash[SHARED]
    yield shared.enter_context(running_stories(request, working_cluster, folder, stories, specs, scene=scene))
    shared.close()


@pytest.fixture(scope="module")
def webhook(own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhook]:
    """A webhook that the API server calls, for all tests of a module."""
    with webhook_setup.opened(own_control_plane, tmp_path_factory.mktemp("webhook")) as webhook:
        yield webhook


@pytest.fixture
def cluster(control_plane: Target) -> Cluster:
    """The administrator's client."""
    return control_plane.client


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A fresh namespace. Nodes named `<namespace>-...` are removed with it."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    cluster.create_namespace(name)
    yield name
    cluster.remove_namespace(name)
    for node in cluster.items("nodes"):
        if node["metadata"]["name"].startswith(f"{name}-"):
            cluster.delete("nodes", node["metadata"]["name"])


@pytest.fixture
def create_policy(cluster: Cluster, namespace: str) -> Iterator[Callable[..., dict[str, Any]]]:
    """Create a TaintEvictionPolicy from its spec; it goes with the test. The default name is the namespace's."""
    names: list[str] = []

    def create(spec: dict[str, Any], name: str = namespace) -> dict[str, Any]:
        created = cluster.create("taintevictionpolicies", policy(spec, name))
        names.append(name)
        return created

    yield create
    for name in names:
        if cluster.find("taintevictionpolicies", name):
            cluster.delete("taintevictionpolicies", name)
