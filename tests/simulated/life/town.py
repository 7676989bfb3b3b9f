"""Operations of a town, simulated or real. A pod of a workload is created again whenever it is gone."""

from typing import Any, Protocol

Json = dict[str, Any]
FIELDS = ("matchExpressions", "matchFields")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class Town(Protocol):
    """Nodes, workloads of one pod each, one policy, one profile, an operator and a webhook."""

    key: str
    """Key of the taint that policies and tolerations name."""
    namespace: str
    has_operator: bool

    def set_taint(self, node: str, value: str | None, effect: str) -> None: ...
    def add_node(self, value: str | None, effect: str) -> str: ...
    def remove_node(self, node: str) -> None: ...
    def set_policy(self, spec: Json | None) -> None: ...
    def set_profile(self, value: str | None) -> None: ...
    def set_injection(self, *, on: bool) -> None: ...
    def set_operator(self, *, on: bool) -> None: ...
    def set_webhook(self, *, on: bool) -> None: ...
    def create(self, name: str, value: str | None) -> None:
        """A workload whose pod tolerates values above this one, by its annotation."""

    def delete(self, name: str) -> None:
        """A workload with its pod."""

    def delete_pod(self, name: str) -> None: ...
    def remove_labels(self) -> bool:
        """Run the command; whether it removed the labels of the key."""

    def settle(self) -> None:
        """Let all controllers finish their work."""

    def nodes(self) -> dict[str, Json]: ...
    def pods(self) -> dict[str, Json]:
        """The pods that are there and not leaving, by name."""

    def explain(self, name: str) -> tuple[str, str]:
        """Why a pod is Pending, and what to do."""

    def mismatches(self) -> list[str]:
        """Pods that stopped matching their node although nothing justified it, since the beginning."""
