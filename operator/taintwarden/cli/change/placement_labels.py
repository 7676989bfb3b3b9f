"""The labels of placement for taints as they are written on a command line."""

from collections.abc import Iterable

from taintwarden.api.names import check_key, check_label_value
from taintwarden.cli.cluster_session import USAGE
from taintwarden.cli.failures import fail
from taintwarden.cli.output import printable, write
from taintwarden.engine.model import Effect, Taint, TaintSelector
from taintwarden.engine.placement import neutral_labels, node_labels
from taintwarden.rehearsal.manifests import BadInput

_FORM = "write KEY=VALUE:EFFECT, for example sla=950:NoSchedule, or KEY for a node without the taint"


def labels_for(taints: Iterable[str]) -> dict[str, str]:
    """The labels of a node with these taints, and without those of which only the key is given.

    Raises:
        BadInput: a taint cannot be read, or labels cannot express it.

    """
    written = [one for one in taints if ":" in one]
    absent = [one for one in taints if ":" not in one]
    found = [_parse(one) for one in written]
    for key in absent:
        _check(key, key, "")
    selectors = [TaintSelector(one.key, placement=True) for one in found]
    labels = node_labels(found, selectors)
    for subject, why in labels.faults:
        msg = f"{subject}: {why}"
        raise BadInput(msg)
    return {**neutral_labels(absent), **labels.labels}


def print_labels(taints: tuple[str, ...], separator: str) -> None:
    """Carry out ``taintwarden placement labels``."""
    try:
        found = labels_for(taints)
    except BadInput as error:
        fail(printable(str(error)), USAGE)
    write(separator.join(f"{label}={value}" for label, value in found.items()))


def _parse(text: str) -> Taint:
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    if effect not in list(Effect):
        msg = f"{text!r}: the effect must be one of {', '.join(Effect)}: {_FORM}"
        raise BadInput(msg)
    _check(text, key, value)
    return Taint(key, value, effect)


def _check(text: str, key: str, value: str) -> None:
    for fault in (*check_key(key), *check_label_value(value)):
        msg = f"{text!r}: {fault.detail}: {_FORM}"
        raise BadInput(msg)
