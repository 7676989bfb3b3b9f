"""What can be wrong with a node: taints of the wrong shape, and values that no comparison can use."""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from taintwarden.api.decode import decode
from taintwarden.api.opt_outs import DO_NOT_EVICT, check_opt_outs
from taintwarden.controller.decoding.times import latest_moment
from taintwarden.engine.history import decode_histories
from taintwarden.engine.model import Effect, Policy, Profile, Taint
from taintwarden.engine.numeric import explain_integer
from taintwarden.engine.operators import TYPED, applies, caution
from taintwarden.fields.field_errors import FieldError
from taintwarden.fields.spec import LabelKey, LabelValue, Spec, checked
from taintwarden.kube.calls.node_calls import HISTORY_ANNOTATION
from taintwarden_placement.admission.checking import (
    FaultSeverity,
    Found,
    annotation_path,
    check_annotation_names,
    look,
    sequence,
    without,
)

_LOOKS_LIKE_A_NUMBER = re.compile(r"-?[0-9][0-9_]*(\.[0-9]+)?|[0-9]+[eE][0-9]+")


def check_time(value: object) -> Iterator[FieldError]:
    """A time as Kubernetes writes it."""
    try:
        latest_moment(str(value))
    except ValueError:
        yield FieldError("", value, "must be an RFC 3339 time, for example 2026-01-31T12:00:00Z")


class TaintSpec(Spec, frozen=True):
    """``spec.taints[]``, checked as strictly as the API server does."""

    key: LabelKey
    effect: Effect
    value: LabelValue = ""
    time_added: Annotated[Any, checked(check_time)] = ""


def check_node(node: object, policies: Sequence[Policy], profiles: Sequence[Profile] = ()) -> Found:
    """A node. ``policies`` and ``profiles`` of the same input say what values have to be, and what compares them."""
    for index, entry in enumerate(sequence(look(node, "spec", "taints"))):
        path = f"spec.taints[{index}]"
        read, errors = decode(without(entry, None), TaintSpec, path)
        yield from ((FaultSeverity.ERROR, error) for error in errors)
        if read is not None:
            taint = Taint(read.key, read.value, read.effect)
            yield from (
                (FaultSeverity.WARNING, fault.below(f"{path}.value")) for fault in _check_value(taint, policies)
            )
            yield from ((FaultSeverity.WARNING, fault.below(f"{path}.value")) for fault in _compared(taint, profiles))
    yield from check_annotation_names(node, (HISTORY_ANNOTATION, DO_NOT_EVICT))
    for fault in check_opt_outs({DO_NOT_EVICT: look(node, "metadata", "annotations", DO_NOT_EVICT)}):
        yield FaultSeverity.WARNING if isinstance(fault.value, str) else FaultSeverity.ERROR, fault
    text = look(node, "metadata", "annotations", HISTORY_ANNOTATION)
    try:
        decode_histories(str(text or ""))
    except ValueError as error:
        fault = FieldError(
            annotation_path(HISTORY_ANNOTATION),
            text,
            f"cannot be read and counts as absent: {error}",
            "remove it: the operator writes it again",
        )
        yield FaultSeverity.WARNING, fault


def _compared(taint: Taint, profiles: Sequence[Profile]) -> Iterator[FieldError]:
    """The first semantic comparison of the value that depends on text."""
    for profile in profiles:
        for one in profile.tolerations:
            reason, remedy = caution(one, taint.value) if applies(one, taint) else ("", "")
            if reason:
                told = f"profile {profile.name} compares it by {one.operator} {one.value}, and {reason}"
                yield FieldError("", taint.value, told, remedy)
                return


def _check_value(taint: Taint, policies: Sequence[Policy]) -> Iterator[FieldError]:
    chosen = [(policy, selector) for policy in policies if (selector := policy.selector_for(taint))]
    typed = [(policy.name, selector.value_type) for policy, selector in chosen if selector.value_type is not None]
    for name, value_type in typed:
        if fault := TYPED[value_type].explain(taint.value):
            yield FieldError("", taint.value, f"policy {name} expects values of type {value_type}", fault)
    # Versions are not reported: 1.28.0 is not a number, while 99.5 is unlikely to mean 99.5.0.
    if not typed and _LOOKS_LIKE_A_NUMBER.fullmatch(taint.value) and (fault := explain_integer(taint.value)):
        yield FieldError("", taint.value, "Gt and Lt cannot compare it", fault)
