"""The demo: a cluster in the process, the real operator beside it, and a judge who only believes the cluster.

The way of a run: `scenario` (who is there, what changes, who must leave) -> `world` (writes it into the cluster) ->
`operator_process` and `replicas` (act on it) -> `observer` (facts, from the cluster alone) -> `judge` -> `summary`,
while `timeline` or `screen` shows it. `play` puts them in order.

Forbidden here: the operator's internals. What must happen is written down in the scenario, not computed by the engine.
"""
