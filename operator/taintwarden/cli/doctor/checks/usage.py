"""Tolerations that plain Kubernetes does not support: to be checked before a gate or Taintwarden is switched off."""

from collections.abc import Iterable, Iterator

from taintwarden.cli.doctor.check import Check, Found, Severity, about
from taintwarden.cli.doctor.context import Context
from taintwarden.engine.model import Toleration
from taintwarden.engine.operators import is_comparison
from taintwarden.engine.profile_selection import matching
from taintwarden.rehearsal.sources import OWNERS, TEMPLATES, Source, Subject


def _extended(context: Context) -> Iterator[Found]:
    for group in context.groups:
        if group.pod_class.tolerations.extended:
            yield about(group, texts(group.pod_class.tolerations.extended))


def _profiles(context: Context) -> Iterator[Found]:
    for profile in context.profiles:
        pods = sum(group.count for group in context.running if matching([profile], group.pod_class))
        subject = Subject("TolerationProfile", profile.name, profile.namespace)
        yield Found(subject, texts(profile.tolerations), pods=pods)


def _native(context: Context) -> Iterator[Found]:
    for group in context.groups:
        if found := comparisons(group.pod_class.tolerations.native):
            yield about(group, texts(found))


def comparisons(tolerations: Iterable[Toleration]) -> tuple[Toleration, ...]:
    """The tolerations with a comparison."""
    return tuple(one for one in tolerations if is_comparison(one))


def texts(tolerations: Iterable[Toleration]) -> str:
    """Tolerations as text."""
    return ", ".join(dict.fromkeys(str(one) for one in tolerations))


CHECKS = (
    Check(
        id="uses-annotation",
        severity=Severity.INFO,
        finds="pods and templates with the annotation taintwarden.io/tolerations",
        remedy="nothing to do; without Taintwarden their native tolerations decide alone",
        needs=(Source.PODS,),
        uses=TEMPLATES,
        run=_extended,
    ),
    Check(
        id="uses-profile",
        severity=Severity.INFO,
        finds="profiles, and the pods that they select",
        remedy="nothing to do; without Taintwarden the native tolerations of these pods decide alone",
        needs=(Source.PROFILES, Source.PODS),
        uses=OWNERS,
        run=_profiles,
    ),
    Check(
        id="uses-native-comparison",
        severity=Severity.INFO,
        finds="pods and templates with Gt, Lt or Semver* in spec.tolerations",
        remedy="before the feature gate is switched off, move them into the annotation, beside a native Exists",
        needs=(Source.PODS,),
        uses=TEMPLATES,
        run=_native,
    ),
)
