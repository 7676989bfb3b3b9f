"""The faults, by name."""

from chaos.faults import network, objects, processes, server, turnover, webhooks
from chaos.faults.base import Fault, Nothing, Scene

FAULTS: dict[str, type[Fault]] = {
    kind.name: kind
    for kind in (
        Nothing,
        server.ApiKilled,
        server.ApiDown,
        server.StoreStopped,
        server.StoreKilled,
        server.StoreRestored,
        server.Compacted,
        network.Cut,
        network.HalfOpen,
        network.Silent,
        network.Partitioned,
        network.Delayed,
        network.DelayedMuch,
        network.Narrow,
        network.Errors,
        objects.Starved,
        objects.Credentials,
        processes.ClockAhead,
        processes.ClockBehind,
        processes.ClockWrong,
        processes.Memory,
        processes.LeaderStopped,
        processes.LeaderKilled,
        processes.BothKilled,
        processes.FiftyKills,
        processes.NoLease,
        processes.Upgrade,
        objects.DefinitionsDeleted,
        objects.DefinitionsReplaced,
        objects.PoliciesDeleted,
        objects.NamespaceDeleted,
        objects.LeaseDeleted,
        webhooks.WebhookHangs,
        webhooks.WebhookDenies,
        webhooks.WebhookDeniesLast,
        webhooks.WebhookBusy,
        turnover.Turnover,
    )
}
SHORT = ("api-killed", "cut")
"""Faults that continuous integration plays."""
BY_NAME_ONLY = frozenset({turnover.Turnover.name})
"""Faults that are not played by default, since they take an hour."""

__all__ = ["BY_NAME_ONLY", "FAULTS", "SHORT", "Fault", "Nothing", "Scene"]
