"""What a person is told who is woken by a guard: which change it was, and whom it would have cost."""

from collections import Counter
from collections.abc import Iterable, Mapping

from taintwarden.engine.machine.inventory import NodeState, history_name
from taintwarden.engine.machine.pending import Pending, Phase
from taintwarden.engine.model import Policy

EXAMPLES = 5


def explain_wave(
    policy: Policy, pending: Iterable[Pending], nodes: Mapping[str, NodeState], change: tuple[str, float] | None
) -> tuple[str, tuple[str, ...]]:
    """The cause of a wave in one sentence, and some of the pods, for the taint that concerns the most pods.

    Where something else changed a moment ago (``change``: what, and when) and the taint's value was there before, that
    is it.
    """
    pods: Counter[str] = Counter()
    places: dict[str, dict[str, Pending]] = {}
    names: list[tuple[float, str]] = []
    for one in pending:
        if one.policy.name != policy.name or one.phase in (Phase.IN_FLIGHT, Phase.LEAVING):
            continue
        name = history_name(one.verdict.taint)
        pods[name] += 1
        places.setdefault(name, {}).setdefault(one.pod.node, one)
        names.append((one.due_at, str(one.pod)))
    if not pods:
        return "evictions of the last window", ()
    name = min(pods, key=lambda one: (-pods[one], one))
    on = places[name]
    node = min(on)
    taint = on[node].verdict.taint
    state = nodes.get(node)
    spans = state.histories[name].spans if state and name in state.histories else ()
    before = f", {spans[-2].value or 'no value'} before" if len(spans) > 1 else ""
    sentence = f"taint {name} on {len(on)} nodes, such as {taint} on {node}{before}"
    if change is not None and spans and spans[-1].since < change[1]:
        sentence = f"{change[0]}; {sentence}"
    return sentence, tuple(text for _, text in sorted(names)[:EXAMPLES])
