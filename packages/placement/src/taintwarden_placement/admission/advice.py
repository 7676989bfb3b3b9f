"""What the author of a template is warned of: pods of it that will not run where their tolerations allow."""

from collections.abc import Collection, Iterator, Sequence

from taintwarden.api.node_affinity import AFFINITY_ANNOTATION
from taintwarden.api.node_affinity import PATH as AFFINITY_PATH
from taintwarden.engine.model import Toleration, Tolerations
from taintwarden.engine.operators import Operator
from taintwarden_placement.admission.checking import look, mapping, sequence
from taintwarden_placement.admission.own_objects import INJECT
from taintwarden_placement.affinity import REQUIRED_EFFECTS
from taintwarden_placement.node_labels.names import Kept, keys_of

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_UNPLACED = (
    "the controller of a DaemonSet reads only the template, and nothing in it keeps pods off nodes whose value of {} "
    "is not tolerated: by NoSchedule they run there, by NoExecute until a policy with exclude.daemonSets false evicts "
    f"them, and are created again. Label the namespace {INJECT}=true, and set placement in a policy"
)
_BY_EXTENDER = (
    "the controller of a DaemonSet does not ask the scheduler extender: it creates a pod for every node with the taint "
    "{}. Where the value is not tolerated the pod stays Pending, and a rolling update waits for it: set "
    "updateStrategy.rollingUpdate.maxUnavailable to more than the number of such nodes"
)


def unplaced(pod: object) -> tuple[str, ...]:
    """A warning that the node affinity in the annotation of a pod, or of a template, is not added to pods."""
    if look(pod, "metadata", "annotations", AFFINITY_ANNOTATION) is None:
        return ()
    return (f"{AFFINITY_PATH}: has no effect on pods that are not injected: label the namespace {INJECT}=true",)


def on_daemon_set(template: object, tolerations: Tolerations, *, by_extender: bool = False) -> Iterator[str]:
    """Warnings for the template of a DaemonSet as it is stored, with these tolerations: what its pods will not do."""
    named = named_keys(look(template, "spec"))
    keys = [key for key in compared_keys(tolerations.extended) if key not in named]
    entered = [key for key in keys if _is_entered(key, tolerations.native)]
    if entered:
        yield (_BY_EXTENDER if by_extender else _UNPLACED).format(", ".join(entered))


def compared_keys(extended: Sequence[Toleration]) -> list[str]:
    """The keys whose values extended tolerations compare, for an effect that keeps pods off nodes."""
    found = (
        one.key
        for one in extended
        if one.key and one.operator != Operator.EXISTS and one.effect in ("", *REQUIRED_EFFECTS)
    )
    return list(dict.fromkeys(found))


def named_keys(spec: object) -> Collection[str]:
    """The keys of taints whose labels the required node affinity of a pod's spec names."""
    return {about.key for about in named_labels(spec) if not about.of_label}


def named_labels(spec: object) -> list[Kept]:
    """What the labels of placement are about that a pod's spec requires, in its affinity or its ``nodeSelector``."""
    terms = sequence(look(spec, "affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms"))
    keys = [look(one, "key") for term in terms for one in sequence(look(term, "matchExpressions"))]
    return keys_of(key for key in [*keys, *mapping(look(spec, "nodeSelector"))] if isinstance(key, str))


def _is_entered(key: str, native: Sequence[Toleration]) -> bool:
    return any(one.key in ("", key) and one.operator == Operator.EXISTS for one in native)
