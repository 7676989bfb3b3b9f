"""Profiles that have no effect, or probably more than is intended."""

from collections.abc import Iterator

from taintwarden.cli.doctor.check import Check, Found, Severity
from taintwarden.cli.doctor.context import Context
from taintwarden.engine.model import Policy, Profile
from taintwarden.engine.profile_selection import matching
from taintwarden.rehearsal.sources import TEMPLATES, Source, Subject


def _subject(profile: Profile) -> Subject:
    return Subject("TolerationProfile", profile.name, profile.namespace)


def _not_accepted(context: Context) -> Iterator[Found]:
    for key, why in sorted(context.profile_problems.items()):
        namespace, _, name = key.partition("/")
        yield Found(Subject("TolerationProfile", name, namespace), why)


def _matches_nothing(context: Context) -> Iterator[Found]:
    for profile in context.profiles:
        if not any(matching([profile], group.pod_class) for group in context.groups):
            yield Found(_subject(profile), "its podSelector selects no pod and no template of its namespace")


def _selects_everything(context: Context) -> Iterator[Found]:
    for profile in context.profiles:
        if not profile.selector.requirements:
            yield Found(_subject(profile), f"has no podSelector, so it is about every pod of {profile.namespace}")


def _excluded(context: Context) -> Iterator[Found]:
    for profile in context.profiles:
        keys = {one.key for one in profile.tolerations}
        acting = [policy for policy in context.policies if any(_names(policy, key) for key in keys)]
        if acting and all(_leaves_alone(context, policy, profile.namespace) for policy in acting):
            told = ", ".join(policy.name for policy in acting)
            yield Found(_subject(profile), f"has no effect: {told} leaves namespace {profile.namespace} alone")


def _names(policy: Policy, key: str) -> bool:
    """Whether the policy may act on a taint with this key and any effect; an empty key is every key."""
    selected = [*(one.key for one in policy.taints), *(one.key for one in policy.devices)]
    return any(
        one in ("*", key) or not key or (one.endswith("/*") and key.startswith(one.removesuffix("*")))
        for one in selected
    )


def _leaves_alone(context: Context, policy: Policy, namespace: str) -> bool:
    if namespace in policy.exclude.namespaces:
        return True
    labels = next((one.metadata.labels for one in context.snapshot.namespaces if one.metadata.name == namespace), None)
    return labels is not None and not policy.namespace_selector.selects(labels)


CHECKS = (
    Check(
        id="profile-not-accepted",
        severity=Severity.ERROR,
        finds="profiles that are not valid; a running operator keeps their last valid version",
        remedy="correct it: kubectl edit tolerationprofile NAME",
        needs=(Source.PROFILES,),
        run=_not_accepted,
    ),
    Check(
        id="profile-matches-nothing",
        severity=Severity.WARNING,
        finds="profiles whose podSelector selects no pod and no template",
        remedy="compare it with: kubectl get pods --show-labels",
        needs=(Source.PROFILES, Source.PODS),
        uses=TEMPLATES,
        run=_matches_nothing,
    ),
    Check(
        id="profile-selects-everything",
        severity=Severity.INFO,
        finds="profiles without a podSelector",
        remedy="give it a podSelector if that is not meant",
        needs=(Source.PROFILES,),
        run=_selects_everything,
    ),
    Check(
        id="profile-excluded",
        severity=Severity.WARNING,
        finds="profiles in a namespace that every policy for their keys leaves alone",
        remedy="remove the profile, or the namespace from exclude.namespaces",
        needs=(Source.PROFILES, Source.POLICIES, Source.NAMESPACES),
        run=_excluded,
    ),
)
