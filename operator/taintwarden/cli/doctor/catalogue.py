"""All checks, in the order in which they are reported."""

from taintwarden.cli.doctor.check import Check
from taintwarden.cli.doctor.checks import (
    budget_checks,
    builtin,
    daemon_sets,
    gates,
    incident,
    nowhere,
    operation,
    pending_pods,
    placement_checks,
    policy_checks,
    profile_checks,
    publisher_checks,
    source_checks,
    toleration_checks,
    undecodable,
    usage,
    value_checks,
    webhook_checks,
)

CATALOGUE: tuple[Check, ...] = (
    *incident.CHECKS,
    *operation.CHECKS,
    *policy_checks.CHECKS,
    *nowhere.CHECKS,
    *builtin.CHECKS,
    *gates.CHECKS,
    *budget_checks.CHECKS,
    *toleration_checks.CHECKS,
    *value_checks.CHECKS,
    *source_checks.CHECKS,
    *publisher_checks.CHECKS,
    *profile_checks.CHECKS,
    *webhook_checks.CHECKS,
    *placement_checks.CHECKS,
    *daemon_sets.CHECKS,
    *pending_pods.CHECKS,
    *undecodable.CHECKS,
    *usage.CHECKS,
)
