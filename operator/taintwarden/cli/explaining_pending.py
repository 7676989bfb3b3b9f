"""Explains a pod that is not bound yet: which nodes may not get it, and why."""

from taintwarden.cli.explanation import Fate, NodeExplanation, PodExplanation
from taintwarden.rehearsal.evaluation import Evaluation

NOT_CONSIDERED = "resources, ports, affinity to pods and the places of volumes are not considered"


def explain_pending(answer: PodExplanation, evaluation: Evaluation) -> PodExplanation:
    """``answer`` with the nodes, by name."""
    answer.fate = Fate.PENDING
    answer.scheduler = evaluation.object.unschedulable or None
    candidate = evaluation.candidates.of(evaluation.object)
    answer.nodes = [NodeExplanation(node.name, list(candidate.refusals(node))) for node in evaluation.nodes]
    taking = [one.name for one in answer.nodes if not one.refusals]
    if not answer.nodes:
        answer.reason = "there is no node"
    elif taking:
        answer.reason = f"{len(taking)} of {len(answer.nodes)} nodes may get it: {NOT_CONSIDERED}"
    else:
        answer.reason = f"none of the {len(answer.nodes)} nodes may get it"
    return answer
