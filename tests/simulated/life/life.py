"""Random events in a town, and the state that must follow."""

import re
from collections.abc import Callable
from random import Random
from typing import Any

from placement.node_selector import term_holds
from simulated.life.town import REQUIRED, Json, Town
from taintwarden.engine.model import Taint
from taintwarden.engine.policy import TaintSelector
from taintwarden_placement.node_labels import node_labels

VALUES = (None, "700", "940", "980", "999", "0950")
BOUNDS = ("800", "950", "990")
TYPES = (None, "Integer", "Version", "String")
MAX_STEPS = 12
"""Maximum number of remedies for one pod: each removes one obstacle."""


class Life:
    """One history. The same seed gives the same acts.

    Args:
        town: where it happens.
        seed: of all chance.

    """

    def __init__(self, town: Town, seed: int) -> None:
        self.town = town
        self.chance = Random(seed)
        self.effect = self.chance.choice(["NoSchedule", "NoExecute"])
        self.evicting = self.chance.choice([[], [self.effect]])
        self.policy: Json | None = None
        self.names: list[str] = []
        self.log: list[str] = []
        self._number = 0

    def begin(self) -> None:
        """Three nodes, a policy and two workloads."""
        for value in ("980", "700", self.chance.choice(VALUES)):
            self.town.add_node(value, self.effect)
        self._set_policy(self._spec())
        self.town.set_injection(on=True)
        for bound in ("950", self.chance.choice(BOUNDS)):
            self._create(bound)
        self.town.settle()

    def act(self) -> None:
        """One thing happens."""
        acts: list[tuple[int, Callable[[], None]]] = [
            (5, self._taint),
            (4, self._change_policy),
            (3, lambda: self._create(self.chance.choice([None, *BOUNDS]))),
            (2, self._delete_pod),
            (1, self._delete),
            (2, lambda: self._do("profile", self.chance.choice([None, *BOUNDS]), self.town.set_profile)),
            (1, lambda: self._switch("injection", self.town.set_injection)),
            (1, self._remove_node),
            (1, self._add_node),
            (1, lambda: self._do("remove labels", None, lambda _: self.town.remove_labels())),
        ]
        chosen = self.chance.choices([act for _, act in acts], [weight for weight, _ in acts])[0]
        chosen()

    def check(self) -> None:
        """Check the state once nothing changes: no pod runs on a node that it does not match, without a reason."""
        assert self.town.mismatches() == [], self.log
        if self.policy is None or not self.town.has_operator:
            return  # labels have their last values
        nodes = self.town.nodes()
        for name, pod in self.town.pods().items():
            node = nodes.get(pod["spec"].get("nodeName", ""))
            if node is not None and not matches(pod, node["metadata"]["labels"]):
                assert self.is_in_force, (name, self.log)
                assert not matches(pod, true_labels(node, self.town.key)), (name, self.log)

    @property
    def is_in_force(self) -> bool:
        """True if the policy places pods."""
        policy = self.policy
        return policy is not None and policy.get("mode") != "DryRun" and bool(policy["taints"][0].get("placement"))

    def end(self) -> None:
        """Every pod that stays Pending has a sentence that says what to do, and doing that helps."""
        for name in sorted(self.town.pods()):
            steps: list[str] = []
            while (pod := self.town.pods().get(name)) is not None and not pod["spec"].get("nodeName"):
                reason, remedy = self.town.explain(name)
                steps.append(f"{reason} -> {remedy}")
                assert len(steps) <= MAX_STEPS, (steps, self.log)
                assert reason, (steps, self.log)
                self._follow(name, remedy, steps)
                self.town.settle()

    # -- acts --------------------------------------------------------------------------------------------------------

    def _do(self, what: str, value: Any, act: Callable[[Any], Any]) -> None:
        self.log.append(f"{what} {value}")
        act(value)

    def _switch(self, what: str, switch: Callable[..., None]) -> None:
        on = self.chance.random() < 0.7
        self.log.append(f"{what} {on}")
        switch(on=on)

    def _spec(self) -> Json:
        taint: Json = {"key": self.town.key, "effects": self.evicting, "placement": True}
        kind = self.chance.choice(TYPES)
        return {"mode": "Enforce", "taints": [taint | ({"valueType": kind} if kind else {})]}

    def _change_policy(self) -> None:
        if self.policy is None:
            self._set_policy(self._spec())
            return
        how = self.chance.choice(["DryRun", "Paused", "Enforce", "drop", "edit", "delete"])
        if how == "delete":
            self._set_policy(None)
        elif how == "drop":  # a policy has to select something
            taint = {"key": self.town.key, "effects": self.evicting or [self.effect], "placement": False}
            self._set_policy({**self.policy, "taints": [taint]})
        elif how == "edit":
            self._set_policy(self._spec())
        else:
            changed = {"paused": True} if how == "Paused" else {"mode": how, "paused": False}
            self._set_policy({**self.policy, **changed})

    def _set_policy(self, spec: Json | None) -> None:
        self.policy = spec
        self._do("policy", spec, self.town.set_policy)

    def _taint(self) -> None:
        node, value = self.chance.choice(sorted(self.town.nodes())), self.chance.choice(VALUES)
        self._do(f"taint {node}", value, lambda value: self.town.set_taint(node, value, self.effect))

    def _add_node(self) -> None:
        self._do("add node", self.chance.choice(VALUES), lambda value: self.town.add_node(value, self.effect))

    def _remove_node(self) -> None:
        nodes = sorted(self.town.nodes())
        if len(nodes) > 2:
            self._do("remove node", self.chance.choice(nodes), self.town.remove_node)

    def _create(self, bound: str | None) -> None:
        self._number += 1
        name = f"web-{self._number}"
        self.names.append(name)
        self._do(f"create {name}", bound, lambda bound: self.town.create(name, bound))

    def _delete(self) -> None:
        if len(self.names) > 1:
            name = self.names.pop(self.chance.randrange(len(self.names)))
            self._do("delete", name, self.town.delete)

    def _delete_pod(self) -> None:
        if self.names:
            self._do("delete pod", self.chance.choice(self.names), self.town.delete_pod)

    # -- remedies ----------------------------------------------------------------------------------------------------

    def _follow(self, name: str, remedy: str, steps: list[str]) -> None:
        """Do what a remedy says."""
        done = False
        for words, act in (
            (r"^add a node,", lambda: self.town.add_node("999", self.effect)),
            (r"^add a node without these taints", lambda: self.town.add_node(None, self.effect)),
            (r"^label a node so that it matches, add one", lambda: self.town.add_node(None, self.effect)),
            (r"look at the operator", lambda: self.town.set_operator(on=True)),
            (r"see that the webhook runs", lambda: self.town.set_webhook(on=True)),
            (r"label the namespace taintwarden.io/inject=true", lambda: self.town.set_injection(on=True)),
            (r"set placement for the key in a policy", lambda: self._set_policy(self._spec())),
            (r"kubectl delete pod \S+ -n \S+: its \w+ creates it again", lambda: self.town.delete_pod(name)),
            (r"use integers", self._correct_values),
        ):
            if re.search(words, remedy):
                act()
                done = True
        assert done or "what the scheduler says" in remedy, (steps, self.log)

    def _correct_values(self) -> None:
        for node in self.town.nodes():
            self.town.set_taint(node, "999", self.effect)


def matches(pod: Json, labels: Json) -> bool:
    """Return True if the required node affinity of a pod matches labels, as the scheduler and the kubelet read it."""
    required = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(REQUIRED)
    return required is None or any(term_holds(term, labels) for term in required["nodeSelectorTerms"])


def true_labels(node: Json, key: str) -> Json:
    """Labels that the taints of a node justify, and its own ones."""
    taints = [Taint(one["key"], one.get("value", ""), one["effect"]) for one in node["spec"].get("taints") or ()]
    return node["metadata"]["labels"] | node_labels(taints, [TaintSelector(key, placement=True)]).labels
