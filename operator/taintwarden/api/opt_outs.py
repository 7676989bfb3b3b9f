"""Annotations that opt a pod out of evictions: Taintwarden's, Karpenter's and that of the cluster autoscaler."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from taintwarden.fields.field_errors import FieldError

DO_NOT_EVICT: Final = "taintwarden.io/do-not-evict"
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"

_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
_PART: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(h|ms|m|s|us|µs|μs|ns)")
_DURATION: Final = re.compile(rf"\+?(?:{_PART.pattern})+")
MAX_SECONDS: Final = (2**63 - 1) / 1e9
"""Maximum seconds of a duration in Go, which counts nanoseconds in 64 bits."""
MAX_CHARACTERS: Final = 100
"""Maximum length of a duration."""
_REMEDIES: Final = {
    DO_NOT_EVICT: 'write "true", in quotes',
    DO_NOT_DISRUPT: 'write "true", or a duration after the binding of the pod such as "4h", in quotes',
    SAFE_TO_EVICT: 'write "false" to opt out, in quotes',
}


class OptOuts(msgspec.Struct, frozen=True):
    """Opt-outs from the annotations of a pod.

    Attributes:
        evictions: True if ``DO_NOT_EVICT`` opts the pod out, which policies respect by ``respectDoNotEvict``.
        disruptions: True if another annotation does, which policies respect by ``respectDoNotDisrupt``.
        protected_seconds: seconds after its binding for which ``DO_NOT_DISRUPT`` does.

    """

    evictions: bool = False
    disruptions: bool = False
    protected_seconds: float = 0.0


NONE: Final = OptOuts()


def opt_outs(annotations: Callable[[str], str]) -> OptOuts:
    """Return the opt-outs of a pod. ``annotations`` returns the value of an annotation by its name."""
    do_not_disrupt = annotations(DO_NOT_DISRUPT)
    return OptOuts(
        annotations(DO_NOT_EVICT) == "true",
        do_not_disrupt == "true" or annotations(SAFE_TO_EVICT) == "false",
        parse_go_duration(do_not_disrupt) or 0.0,
    )


def check_opt_outs(annotations: Mapping[str, object]) -> Iterator[FieldError]:
    """Yield an error for each value without effect but "", "true" and "false". Its remedy is a value that has one."""
    for name, remedy in _REMEDIES.items():
        value = annotations.get(name)
        if value in (None, "", "true", "false") or (name == DO_NOT_DISRUPT and parse_go_duration(value)):
            continue
        reason = "has no effect" if isinstance(value, str) else "must be a string"
        yield FieldError(f"metadata.annotations[{name}]", value, reason, remedy)


def parse_go_duration(text: object) -> float | None:
    """Return the seconds of a positive duration as Go's ``time.ParseDuration`` reads it, such as ``1h30m``; else None.

    Karpenter accepts one as the value of its annotation since 1.12 (``IsDoNotDisruptActive``).
    """
    if not isinstance(text, str) or len(text) > MAX_CHARACTERS or _DURATION.fullmatch(text) is None:
        return None
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    return seconds if 0 < seconds <= MAX_SECONDS else None
