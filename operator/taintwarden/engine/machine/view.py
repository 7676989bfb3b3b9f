"""Read access for other packages: frozen values, created on request. Nothing else of the machine is exposed."""

from collections.abc import Generator, Iterator

import msgspec

from taintwarden.engine.commands import GuardReport
from taintwarden.engine.evaluate import TaintVerdict
from taintwarden.engine.history import TaintHistory
from taintwarden.engine.limits import Refusal
from taintwarden.engine.machine.claim_views import ClaimView, ClaimViews
from taintwarden.engine.machine.guarding import guard_report
from taintwarden.engine.machine.reports import CLAIMS_AT_ONCE, PlacesReport, PolicyReport, Reports
from taintwarden.engine.machine.staying import why_staying
from taintwarden.engine.machine.world import World
from taintwarden.engine.model import Budget, Instant, Node, Pod, PodClass, Profile, Taint, Tolerations
from taintwarden.engine.policy import Policy

MATCHES_AT_ONCE = 20_000
"""Pairs of a profile and a class of pods after which a slice of the count ends. A slice takes 2 to 4 ms."""


class NodeView(msgspec.Struct, frozen=True):
    """A node with the histories of its taints, and the policies that act on it."""

    node: Node
    taints: tuple[tuple[Taint, TaintHistory], ...]
    """Taints of the node itself, and those that policies derive from its values."""
    policies: tuple[Policy, ...]
    device_taints: tuple[tuple[Taint, TaintHistory], ...] = ()
    """Taints of devices that its pods use. Each concerns only the pods that use the device."""


class View:
    """Reads the machine. Every result is a frozen value that does not change with it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._claim_views = ClaimViews(world)
        self._reports = Reports(world, self._claim_views)

    # -- the machine itself ---------------------------------------------------------------------------------------

    @property
    def is_synced(self) -> bool:
        """True once all lists that decisions need were delivered."""
        return self._world.synced

    @property
    def is_leading(self) -> bool:
        """True if this process leads."""
        return self._world.leading

    @property
    def is_blind(self) -> bool:
        """True if a stream is cut off from the API server."""
        return bool(self._world.blind)

    @property
    def is_busy(self) -> bool:
        """True if calls in progress fill half the slots. Work that is not urgent then waits."""
        return self._world.limiter.calls.is_busy

    @property
    def evaluations(self) -> int:
        """Number of evaluations computed. Pods with the same tolerations share them."""
        return self._world.verdicts.evaluator.computed

    # -- what is in force -----------------------------------------------------------------------------------------

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The policies in force, sorted by name."""
        return self._world.verdicts.policies

    @property
    def profiles(self) -> list[Profile]:
        """The profiles in force, sorted by namespace and name."""
        return self._world.verdicts.profiles()

    def profiles_of(self, pod_class: PodClass) -> tuple[Profile, ...]:
        """The profiles that select pods of a class, sorted by name."""
        return self._world.verdicts.profiles_of(pod_class)

    def tolerations_of(self, pod_class: PodClass) -> Tolerations:
        """All tolerations of pods of a class: their own and those of profiles."""
        return self._world.verdicts.tolerations(pod_class)

    def policies_for(self, pod_class: PodClass) -> tuple[Policy, ...]:
        """The policies that may evict pods of a class, sorted by name."""
        return self._world.verdicts.policies_for(pod_class)

    def namespace_labels(self, name: str) -> dict[str, str] | None:
        """Labels of a namespace; None if it is not known."""
        labels = self._world.verdicts.namespace_labels(name)
        return None if labels is None else dict(labels)

    # -- the cluster ----------------------------------------------------------------------------------------------

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of all nodes."""
        return tuple(name for name, state in self._world.cluster.nodes.items() if state.node is not None)

    def node(self, name: str) -> NodeView | None:
        """A node; None if it is not known, even if pods refer to it."""
        state = self._world.cluster.nodes.get(name)
        if state is None or state.node is None:
            return None
        taints = list(state.taints())
        return NodeView(
            state.node,
            tuple([taint for taint in taints if taint[0].origin is None]),
            self._world.verdicts.policies_on(state),
            tuple([taint for taint in taints if taint[0].origin is not None]),
        )

    def pods(self, node: str) -> tuple[Pod, ...]:
        """The pods of a node."""
        state = self._world.cluster.nodes.get(node)
        return () if state is None else tuple(state.pods.values())

    @property
    def pod_count(self) -> int:
        """Number of pods on nodes, without finished and terminating ones."""
        return self._world.cluster.classes.total()

    def verdicts(self, node: str, pod_class: PodClass) -> tuple[TaintVerdict, ...]:
        """Verdicts on pods of a class on a node, even if the node has no such pod."""
        state = self._world.cluster.nodes.get(node)
        return () if state is None else self._world.verdicts.compute(state, pod_class)[0]

    def why_staying(self, node: str, pod_class: PodClass, policy: Policy) -> str:
        """Why a policy evicts no pods of a class from a node; empty if it does, or names no taint of the node."""
        state = self._world.cluster.nodes.get(node)
        return "" if state is None else why_staying(self._world.verdicts, state, pod_class, policy)

    def budgets_of(self, pod_class: PodClass) -> tuple[Budget, ...]:
        """The PodDisruptionBudgets that select pods of a class, sorted by name."""
        return self._world.limiter.budgets.of(pod_class)

    def budgets(self, pod: Pod) -> list[tuple[Budget, Refusal | None]]:
        """The PodDisruptionBudgets that the API server checks for a pod, sorted by name, each with its refusal."""
        return self._world.limiter.budgets.evaluate(pod, self._world.now.monotonic)

    # -- claims ---------------------------------------------------------------------------------------------------

    def claims(self, uid: str) -> tuple[ClaimView, ...]:
        """The claims on a pod, those of enforcing policies first, then by deadline."""
        evictee = self._world.claims.evictees.get(uid)
        return () if evictee is None else self._claim_views.of(evictee)

    def all_claims(self) -> Iterator[ClaimView]:
        """Every claim by which its pod still has to leave, by pod."""
        for evictee in self._world.claims.evictees.values():
            yield from self._claim_views.of(evictee)

    # -- reports --------------------------------------------------------------------------------------------------

    def report_in_slices(
        self, now: Instant, claims_at_once: int = CLAIMS_AT_ONCE
    ) -> Generator[None, None, list[PolicyReport]]:
        """Create one report per policy, sorted by name. Yields between slices, so that the machine may run.

        A claim counts as it is in its slice. One that is added after the first slice does not count.
        """
        return self._reports.slices(now, claims_at_once)

    def guard(self, policy: str) -> GuardReport | None:
        """The guard of a policy; None if it has none."""
        return guard_report(self._world, policy)

    def places(self, policy: str) -> PlacesReport | None:
        """Nodes from which pods of a policy may leave; None if the policy does not limit them."""
        return self._reports.places(policy)

    def matched_pods(self, at_once: int = MATCHES_AT_ONCE) -> Generator[None, None, dict[str, int]]:
        """Number of pods on nodes that each profile selects, by ``namespace/name``. Yields between slices."""
        matched, done = dict.fromkeys(self.profiles, 0), 0
        for pod_class, count in list(self._world.cluster.classes.items()) if matched else ():
            profiles = self.profiles_of(pod_class)
            for profile in profiles:
                if profile in matched:  # otherwise it changed between two slices
                    matched[profile] += count
            done += 1 + len(profiles)
            if done >= at_once:
                done = 0
                yield
        return {str(profile): count for profile, count in matched.items()}
