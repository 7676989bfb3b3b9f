"""What people are told: that it is true, and that nothing stays unsaid."""

from typing import TYPE_CHECKING, Any

from simulated.world import law
from simulated.world.adapter import Notice
from simulated.world.agenda import EPOCH
from simulated.world.judges.base import Judge
from simulated.world.objects import Node

if TYPE_CHECKING:
    from simulated.world.judges import Judges
    from simulated.world.replica import Replica

REPORT_SECONDS = 5.0
OURS = "taintwarden.io/do-not-evict"


class Notices(Judge):
    """A notice that an eviction is cancelled says that the pod stays, or that its node is gone, as far as was told."""

    name = "notice"

    def noticed(self, replica: "Replica", notice: Notice) -> None:
        if notice.what != "Cancelled":
            return
        pod = replica.told.known["pods"].get(notice.pod)
        if pod is None or not pod.node:
            return
        is_gone, says_gone = replica.told.node(pod.node) is None, notice.raw.node_gone
        if is_gone != says_gone:
            said = "to stay on a node that is gone" if says_gone else "to stay"
            self.breach(
                notice.pod, f"{notice.pod} is reported {said}, and {pod.node} is {'gone' if is_gone else 'there'}"
            )


class Silence(Judge):
    """Each pod on a node that is removed is evicted before, or is reported as missing its deadline: also one that the
    policy leaves out because of its annotations or its namespace. An annotation with a value that means nothing is
    reported, too.
    """

    name = "silence"

    def __init__(self, judges: "Judges") -> None:
        super().__init__(judges)
        self._reported: dict[str, None] = {}
        """UIDs of pods whose hard deadlines were spoken of."""

    def noticed(self, replica: "Replica", notice: Notice) -> None:
        if notice.what in ("DeadlineAtRisk", "DeadlineMissed"):
            self._reported[notice.pod] = None

    def stored(self, kind: str, key: str, before: Any, after: Any) -> None:
        if kind != "nodes" or after is None or before is None or before.taints == after.taints:
            return
        for policy in self.world.truth.policies():
            rules = law.rules_of(policy)
            if rules.reclaim is None or rules.mode != "Enforce" or not law.matches(rules.nodes, after.labels):
                continue
            known = [(one.key, one.effect) for one in before.taints]
            for taint in after.taints:
                if law.specificity(rules, taint) and (taint.key, taint.effect) not in known:
                    self.world.agenda.after(rules.reclaim + REPORT_SECONDS, self._check(rules, after, taint.key))

    def _check(self, rules: law.Rules, node: Node, key: str) -> Any:
        began = self.world.agenda.now

        def check() -> None:
            world = self.world
            current: Node | None = world.store.get("nodes", node.name)
            policy = world.store.get("policies", rules.name)
            if current is None or current.uid != node.uid or policy is None or policy.spec is None:
                return
            if law.rules_of(policy).relevant() != rules.relevant() or not any(one.key == key for one in current.taints):
                return
            for pod in world.store.objects["pods"].values():
                if pod.node != node.name or pod.stopping_until is not None or pod.uid in self._reported:
                    continue
                self._check_pod(rules, pod, current, began)

        return check

    def _check_pod(self, rules: law.Rules, pod: Any, node: Node, began: float) -> None:
        world = self.world
        if pod.owner is not None and pod.owner.kind == "DaemonSet":
            return
        if self.judges.bound_since(pod) > EPOCH + began or self.judges.well_since(pod) > began:
            return
        if self.judges.changed_since(pod, world.agenda.now) > began or not law.matches(rules.pods, pod.labels):
            return
        is_left_out = pod.namespace in rules.left_out or bool(law.opts_out(rules, pod, world.agenda.wall))
        taints = [one for one in node.taints if law.specificity(rules, one)]
        if is_left_out and not all(law.tolerates(world.truth, pod, one) for one in taints):
            why = f"is in {pod.namespace}" if pod.namespace in rules.left_out else f"carries {dict(pod.marks)}"
            self.breach(
                pod.uid,
                f"{pod.uid}, which {why}, is on {node.name} when {rules.name} counts it as gone, and nothing said so",
            )

    def calm_ends(self) -> None:
        leader = self.world.leader
        if leader is None or leader.engine is None:
            return
        for pod in self.world.store.objects["pods"].values():
            value = pod.marks.get(OURS, "true")
            if pod.node and value not in ("true", "false") and not leader.engine.reported.get(pod.uid):
                self.breach(pod.uid, f"{pod.uid} carries {OURS}={value}, which means nothing, and nothing said so")
