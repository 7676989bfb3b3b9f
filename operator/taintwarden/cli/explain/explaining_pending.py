"""Explains a pod that is not bound yet: which nodes may not get it, why, and what to do."""

from taintwarden.cli.explain.explanation import Fate, NodeExplanation, PodExplanation
from taintwarden.rehearsal.evaluation import Evaluation
from taintwarden.rehearsal.pending import diagnose


def explain_pending(answer: PodExplanation, evaluation: Evaluation) -> PodExplanation:
    """``answer`` with the nodes, by name."""
    answer.fate = Fate.PENDING
    answer.scheduler = evaluation.object.unschedulable or None
    pod = evaluation.object
    found = diagnose(pod, evaluation.candidates.of(pod), evaluation.nodes, evaluation.namespace_labels or {})
    answer.nodes = [NodeExplanation(name, [one.text for one in why]) for name, why in found.obstacles.items()]
    answer.reason, answer.remedy = found.reason, found.remedy
    return answer
