"""Devices: whether their taints are known, and whom Kubernetes evicts because of them itself."""

from collections.abc import Iterable, Iterator

from taintwarden.cli.doctor.check import Check, Found, Severity
from taintwarden.cli.doctor.context import Context
from taintwarden.cli.doctor.doctor_snapshot import BuiltIn
from taintwarden.controller import wording
from taintwarden.controller.device_handlers import device_claim, device_slice, taint_rule
from taintwarden.engine.device_inventory import DeviceInventory
from taintwarden.engine.evaluate import acting_policy, judge
from taintwarden.engine.model import DeviceEffect, Taint, Toleration, TolerationSecondsMode
from taintwarden.kube.wire.device_kinds import DeviceSelectorObject
from taintwarden.rehearsal.sources import Source, Subject

_SWITCH = "--controllers=*,-device-taint-eviction-controller"


def _not_served(context: Context) -> Iterator[Found]:
    unserved = context.snapshot.devices_unserved
    told = {one.name: one.devices_problem for one in context.summaries}
    for policy in context.policies if unserved or any(told.values()) else ():
        why = wording.devices_unknown(unserved) if unserved else told.get(policy.name)
        if policy.devices and why:
            yield Found(Subject("TaintEvictionPolicy", policy.name), why)


def _inventory(context: Context) -> DeviceInventory:
    found = DeviceInventory()
    for one in context.snapshot.slices:
        found.put_slice(one.metadata.name, device_slice(one))
    for rule in context.snapshot.taint_rules:
        found.put_rule(rule.metadata.name, taint_rule(rule))
    return found


def _built_in_acts(context: Context) -> Iterator[Found]:
    state = context.snapshot.built_in_for_devices
    if state is BuiltIn.ABSENT:
        return
    inventory, fate = _inventory(context), "deletes" if state is BuiltIn.RUNS else "deletes, if it is on,"
    for obj in context.snapshot.device_claims:
        claim, subject = device_claim(obj), Subject("ResourceClaim", obj.metadata.name, obj.metadata.namespace)
        for use in claim.uses if claim is not None else ():
            for taint, _ in inventory.taints(use.device):
                policy = acting_policy(taint, context.policies)
                # Its controller ignores a toleration without effect (pkg/controller/devicetainteviction of 1.37).
                counted = [one for one in use.tolerations if one.effect == DeviceEffect.NO_EXECUTE]
                judgement = judge(counted, taint, TolerationSecondsMode.KUBERNETES)
                is_kept = judgement.tolerated and judgement.seconds is None
                if policy is not None and taint.effect == DeviceEffect.NO_EXECUTE and not is_kept and claim is not None:
                    message = (
                        f"has {taint}, on which policy {policy.name} acts, and does not tolerate it: the built-in "
                        f"device taint eviction {fate} its pods without a budget"
                    )
                    yield Found(subject, message, pods=len(claim.consumers))


def unreadable_values(context: Context, asking: Iterable[Toleration]) -> Iterator[Found]:
    """Taints of devices in use whose values cannot be compared, by a policy or by these tolerations."""
    claims = [claim for obj in context.snapshot.device_claims if (claim := device_claim(obj)) is not None]
    inventory = _inventory(context)
    for device in sorted({use.device for claim in claims for use in claim.uses}):
        for taint, _ in inventory.taints(device):
            policy = acting_policy(taint, context.policies)
            selector = None if policy is None else policy.selector_for(taint)
            asked = [one for one in asking if one.key == taint.key]
            why = wording.invalid_taint(taint, policy, asked) if selector is not None else ""
            if why and selector is not None and (asked or selector.value_type is not None):
                remedy = "the driver or the DeviceTaintRule has to set a value that can be compared"
                yield Found(Subject("Device", str(device)), f"{taint} cannot be compared: {why}", remedy)


def _selects_all(context: Context) -> Iterator[Found]:
    for rule in context.snapshot.taint_rules:
        if rule.spec.device_selector == DeviceSelectorObject():
            taint = Taint(rule.spec.taint.key, rule.spec.taint.value, rule.spec.taint.effect)
            told = f"its deviceSelector is empty, so every device of the cluster has {taint}"
            yield Found(Subject("DeviceTaintRule", rule.metadata.name), told)


CHECKS = (
    Check(
        id="devices-not-served",
        severity=Severity.ERROR,
        finds="policies with devices, where the API server does not serve them or the operator does not know them",
        remedy="Kubernetes serves resource.k8s.io/v1 from 1.34; the operator needs the component devices",
        needs=(Source.POLICIES,),
        uses=(Source.SLICES, Source.DEVICE_CLAIMS),
        run=_not_served,
    ),
    Check(
        id="device-builtin-acts",
        severity=Severity.WARNING,
        finds="claims that do not tolerate a NoExecute taint of their device on which a policy acts",
        remedy=f"tolerate it in the claim with Exists and NoExecute; or run kube-controller-manager with {_SWITCH}",
        needs=(Source.POLICIES, Source.SLICES, Source.DEVICE_CLAIMS),
        uses=(Source.TAINT_RULES, Source.BUILT_IN),
        run=_built_in_acts,
    ),
    Check(
        id="device-rule-selects-all",
        severity=Severity.WARNING,
        finds="DeviceTaintRules with an empty selector, while a policy selects taints of devices",
        remedy="name a driver, pool or device in spec.deviceSelector: kubectl edit devicetaintrule NAME",
        needs=(Source.POLICIES, Source.TAINT_RULES),
        run=_selects_all,
    ),
)
