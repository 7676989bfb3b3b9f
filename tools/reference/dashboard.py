"""The dashboard for Grafana: policies, the operator, the webhooks and the scheduler extender, as JSON.

Every replica reports the gauges of policies, so queries use the greatest value. Counters are summed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, statetimeline, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as options
from grafana_foundation_sdk.models import dashboard as model

SOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
OF_POLICIES = '{policy=~"$policy"}'
STEP = "$__rate_interval"
LIST = options.LegendDisplayMode.LIST
HALF = 12
"""Half of Grafana's 24 columns."""
RED, AMBER, GREEN = "red", "orange", "green"
Built = timeseries.Panel | stat.Panel | statetimeline.Panel
Query = tuple[str, str]
"""An expression, and the legend of its series."""


@dataclass(frozen=True)
class Panel:
    """One panel: title, description, queries, and the unit of its axis as Grafana names it."""

    title: str
    meaning: str
    queries: tuple[Query, ...]
    unit: str = "short"
    width: int = HALF
    states: tuple[tuple[int, str, str], ...] = ()
    """Values with name and colour, for a panel that shows states over time."""
    limit: float | None = None
    """Value from which a single number is red; None for never."""


def _median_and_p99(histogram: str) -> tuple[Query, ...]:
    """Return the queries for the median and the 99th percentile of a histogram."""
    rate = f"sum by (le) (rate({histogram}_bucket[{STEP}]))"
    return tuple((f"histogram_quantile({share}, {rate})", name) for share, name in ((0.5, "half"), (0.99, "99 %")))


NOW = (
    Panel("Leaders", "Exactly one replica has to lead.", (("sum(taintwarden_leader)", ""),), width=4),
    Panel("Replicas", "Replicas of the operator that are scraped.", (("count(taintwarden_leader)", ""),), width=4),
    Panel(
        "Alerts that fire",
        "Alerts of this operator. Each has a page in docs/runbooks.",
        (('count(ALERTS{alertname=~"Taintwarden.+", alertstate="firing"}) or vector(0)', ""),),
        width=4,
        limit=1,
    ),
    Panel(
        "Tripped guards",
        "Policies whose guard has tripped, whatever its action; in mode DryRun it holds nothing.",
        ((f"sum(max by (policy) (taintwarden_guard_tripped{OF_POLICIES}))", ""),),
        width=4,
        limit=1,
    ),
    Panel(
        "Pods that have to leave",
        "Now, or at a known time.",
        ((f"sum(max by (policy) (taintwarden_pending_evictions{OF_POLICIES}))", ""),),
        width=4,
    ),
    Panel(
        "Invalid taints",
        "Taints of nodes whose values cannot be compared.",
        ((f"sum(max by (policy) (taintwarden_invalid_taints{OF_POLICIES}))", ""),),
        width=4,
        limit=1,
    ),
)
POLICIES = (
    Panel(
        "Pods that have to leave, by policy",
        "Now, or at a known time.",
        ((f"max by (policy) (taintwarden_pending_evictions{OF_POLICIES})", "{{policy}}"),),
    ),
    Panel(
        "Eviction calls by outcome",
        "Calls per second; `dry-run` is what a policy in mode DryRun would have done.",
        ((f"sum by (outcome) (rate(taintwarden_evictions_total{OF_POLICIES}[{STEP}]))", "{{outcome}}"),),
        unit="ops",
    ),
    Panel(
        "Due pods that a limit delays",
        "docs/concepts.md states what each limit counts.",
        ((f"sum by (limit) (max by (policy, limit) (taintwarden_limited_evictions{OF_POLICIES}))", "{{limit}}"),),
    ),
    Panel(
        "Due pods that a PodDisruptionBudget blocks",
        "At most 20 budgets of each policy are named.",
        (
            (
                f"max by (policy, budget) (taintwarden_budget_blocked_evictions{OF_POLICIES})",
                "{{budget}} ({{policy}})",
            ),
        ),
    ),
    Panel(
        "Guards",
        "A tripped guard holds the evictions of its policy, or those of one namespace; with action Report, or in mode "
        "DryRun, it holds nothing.",
        ((f"max by (policy) (taintwarden_guard_tripped{OF_POLICIES})", "{{policy}}"),),
        states=((0, "armed", GREEN), (1, "tripped", RED)),
    ),
    Panel(
        "Pods that a tripped guard lets leave",
        "With action Pace evictions continue, as many in each window as the guard allows.",
        ((f"max by (policy) (taintwarden_guard_paced_pods{OF_POLICIES})", "{{policy}}"),),
    ),
    Panel(
        "Zones",
        "Many nodes of a Degraded or Full zone are unhealthy, so its evictions are slowed down or stopped.",
        ((f"max by (policy, zone) (taintwarden_zone_state{OF_POLICIES})", "{{zone}} ({{policy}})"),),
        states=((0, "Normal", GREEN), (1, "Degraded", AMBER), (2, "Full", RED)),
    ),
    Panel(
        "Evicting nodes",
        "Nodes with pods that have to leave.",
        (
            (f"max by (policy) (taintwarden_evicting_nodes{OF_POLICIES})", "{{policy}}"),
            (f"max by (policy) (taintwarden_nodes_with_place{OF_POLICIES})", "{{policy}}: with a place"),
        ),
    ),
    Panel(
        "Lateness of evictions",
        "From the deadline of a pod until it was seen to leave after an eviction call.",
        _median_and_p99("taintwarden_eviction_lateness_seconds"),
        unit="s",
    ),
    Panel(
        "Pods that eviction calls did not evict",
        "By the outcome of the last call; `blocked` also without a call.",
        ((f"sum by (reason) (max by (policy, reason) (taintwarden_blocked_evictions{OF_POLICIES}))", "{{reason}}"),),
    ),
    Panel(
        "Per minute: missed deadlines, cancelled evictions",
        "Pods killed with their node or given less time to stop, and evictions that were announced and not made.",
        (
            (f"60 * sum(rate(taintwarden_missed_deadlines_total{OF_POLICIES}[{STEP}]))", "missed"),
            (f"60 * sum(rate(taintwarden_evictions_cancelled_total{OF_POLICIES}[{STEP}]))", "cancelled"),
        ),
    ),
    Panel(
        "Mode of the policies in force",
        "A policy in mode DryRun or Paused evicts no pod.",
        (('max by (policy) (taintwarden_policy_mode{policy=~"$policy", mode="Enforce"})', "{{policy}}"),),
        states=((0, "does not enforce", AMBER), (1, "Enforce", GREEN)),
    ),
    Panel(
        "Accepted policies",
        "Whether the newest version of a policy is in force.",
        ((f"min by (policy) (taintwarden_policy_accepted{OF_POLICIES})", "{{policy}}"),),
        states=((0, "not accepted", RED), (1, "accepted", GREEN)),
    ),
)
OPERATOR = (
    Panel(
        "Leader",
        "Which replica decides and evicts.",
        (("taintwarden_leader", "{{instance}}"),),
        states=((0, "follows", AMBER), (1, "leads", GREEN)),
    ),
    Panel(
        "View of the cluster",
        "A replica that is disconnected from the API server evicts no pod.",
        (("taintwarden_stale_view", "{{instance}}"),),
        states=((0, "complete", GREEN), (1, "stale", RED)),
    ),
    Panel(
        "Watches that ended or failed, per minute",
        "`ended` is normal. The reasons are in docs/reference/metrics.md.",
        (
            (
                f"60 * sum by (resource, reason) (rate(taintwarden_watch_restarts_total[{STEP}])) > 0",
                "{{resource}}: {{reason}}",
            ),
        ),
    ),
    Panel(
        "Duration of eviction calls",
        "As the operator sees them.",
        _median_and_p99("taintwarden_eviction_request_duration_seconds"),
        unit="s",
    ),
    Panel(
        "Memory",
        "Of all replicas of the operator, the webhook and the scheduler extender.",
        (("process_resident_memory_bytes and on (instance) taintwarden_build_info", "{{instance}}"),),
        unit="bytes",
    ),
    Panel(
        "CPU",
        "Cores in use.",
        ((f"rate(process_cpu_seconds_total[{STEP}]) and on (instance) taintwarden_build_info", "{{instance}}"),),
    ),
)
WEBHOOK = (
    Panel(
        "Reviews by result",
        "Objects per second that the API server sent to the webhooks.",
        (
            (
                f"sum by (webhook, result) (rate(taintwarden_admission_requests_total[{STEP}])) > 0",
                "{{webhook}}: {{result}}",
            ),
        ),
        unit="ops",
    ),
    Panel(
        "Duration of reviews",
        "Without the network. The API server waits for 2 s.",
        _median_and_p99("taintwarden_admission_duration_seconds"),
        unit="s",
    ),
    Panel(
        "Certificate: time left",
        "It is renewed with a third of its time left.",
        (("min(taintwarden_webhook_certificate_expiry_timestamp_seconds) - time()", "certificate"),),
        unit="s",
    ),
    Panel(
        "Configurations that call the webhooks",
        "0: the API server does not call them.",
        (("max by (configuration) (taintwarden_webhook_configured)", "{{configuration}}"),),
        states=((0, "missing", RED), (1, "there", GREEN)),
    ),
    Panel(
        "Configurations that trust the webhooks",
        "0: caBundle is missing or of another certificate, so the API server does not call them.",
        (("min by (configuration) (taintwarden_webhook_trusted)", "{{configuration}}"),),
        states=((0, "untrusted", RED), (1, "trusted", GREEN)),
    ),
)
EXTENDER = (
    Panel(
        "Requests of schedulers by result",
        "Requests per second that kube-scheduler sent to the scheduler extender.",
        ((f"sum by (verb, result) (rate(taintwarden_extender_requests_total[{STEP}])) > 0", "{{verb}}: {{result}}"),),
        unit="ops",
    ),
    Panel(
        "Duration of requests of schedulers",
        "Without the network. kube-scheduler waits for 2 s, and each pod waits for the answer.",
        _median_and_p99("taintwarden_extender_duration_seconds"),
        unit="s",
    ),
    Panel(
        "Nodes that the extender refused",
        "Per second, by the first reason: 100 nodes that are refused for one pod count as 100.",
        ((f"sum by (reason) (rate(taintwarden_extender_refused_nodes_total[{STEP}]))", "{{reason}}"),),
        unit="ops",
    ),
    Panel(
        "Certificate of the extender: time left",
        "kube-scheduler trusts this certificate until it is replaced in its configuration.",
        (("min(taintwarden_extender_certificate_expiry_timestamp_seconds) - time()", "certificate"),),
        unit="s",
    ),
)
ROWS = {"Now": NOW, "Policies": POLICIES, "Operator": OPERATOR, "Webhooks": WEBHOOK, "Scheduler extender": EXTENDER}


def dashboard_json() -> str:
    """Return the whole dashboard as JSON for Grafana."""
    made = (
        dashboard.Dashboard("Taintwarden")
        .uid("taintwarden")
        .description("Evictions by taints: what policies do, what delays them, and whether the operator works.")
        .tags(["taintwarden"])
        .readonly()
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .time("now-1h", "now")
        .refresh("30s")
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(
            dashboard.QueryVariable("policy")
            .label("Policy")
            .datasource(SOURCE)
            .query("label_values(taintwarden_policy_accepted, policy)")
            .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
            .multi(True)
            .include_all(True)
            .all_value(".+")
        )
    )
    number = 0
    for title, panels in ROWS.items():
        made = made.with_row(dashboard.Row(title).id(number := number + 1))
        for panel in panels:
            made = made.with_panel(_built(panel).id(number := number + 1))
    return JSONEncoder(sort_keys=True, indent=2).encode(made.build()) + "\n"


def queries() -> Iterator[tuple[str, str]]:
    """Yield every query with the title of its panel."""
    for panels in ROWS.values():
        for panel in panels:
            yield from ((panel.title, expression) for expression, _ in panel.queries)


def _built(panel: Panel) -> Built:
    made = _states(panel) if panel.states else _number(panel) if panel.width < HALF else _lines()
    made.title(panel.title).description(panel.meaning).datasource(SOURCE).unit(panel.unit)
    made.span(panel.width).height(8 if panel.width == HALF else 4)
    for letter, (expression, name) in zip("ABCDEFGH", panel.queries, strict=False):
        made.with_target(prometheus.Dataquery().expr(expression).legend_format(name).ref_id(letter).datasource(SOURCE))
    return made


def _lines() -> timeseries.Panel:
    legend = common.VizLegendOptions().show_legend(True).placement(options.LegendPlacement.BOTTOM)
    return timeseries.Panel().min(0).fill_opacity(10).line_width(2).legend(legend.display_mode(LIST))


def _number(panel: Panel) -> stat.Panel:
    steps = [model.Threshold(value=None, color=GREEN)]
    if panel.limit is not None:
        steps.append(model.Threshold(value=panel.limit, color=RED))
    last = common.ReduceDataOptions().calcs(["lastNotNull"])
    made = stat.Panel().graph_mode(options.BigValueGraphMode.AREA).reduce_options(last)
    return made.thresholds(dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps))


def _states(panel: Panel) -> statetimeline.Panel:
    results = {
        str(value): model.ValueMappingResult(text=text, color=color, index=index)
        for index, (value, text, color) in enumerate(panel.states)
    }
    legend = common.VizLegendOptions().show_legend(False).placement(options.LegendPlacement.BOTTOM)
    made = statetimeline.Panel().mappings([model.ValueMap(options=results)])
    return made.show_value(options.VisibilityMode.AUTO).merge_values(True).legend(legend.display_mode(LIST))
