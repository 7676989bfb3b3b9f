"""The demo: a cluster in the process, the real operator next to it, and a check that reads the cluster only.

The steps of a run: `scenario` (nodes, pods, changes, expected evictions) -> `world` (writes it into the cluster) ->
`operator_process` and `replicas` (act on it) -> `observer` (facts, from the cluster alone) -> `judge` -> `summary`,
while `timeline` or `screen` shows it. `play` runs them in order.

Forbidden here: the operator's internals. The expected result is part of the scenario, not computed by the engine.
"""
