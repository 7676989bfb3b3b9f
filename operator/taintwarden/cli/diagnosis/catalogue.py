"""All checks, in the order in which they are reported."""

from taintwarden.cli.diagnosis import (
    budgets,
    builtin,
    daemon_sets,
    gates,
    incident,
    nowhere,
    objects,
    operation,
    pending,
    placement,
    policies,
    profiles,
    tolerations,
    usage,
    values,
    webhooks,
)
from taintwarden.cli.diagnosis.check import Check

CATALOGUE: tuple[Check, ...] = (
    *incident.CHECKS,
    *operation.CHECKS,
    *policies.CHECKS,
    *nowhere.CHECKS,
    *builtin.CHECKS,
    *gates.CHECKS,
    *budgets.CHECKS,
    *tolerations.CHECKS,
    *values.CHECKS,
    *profiles.CHECKS,
    *webhooks.CHECKS,
    *placement.CHECKS,
    *daemon_sets.CHECKS,
    *pending.CHECKS,
    *objects.CHECKS,
    *usage.CHECKS,
)
