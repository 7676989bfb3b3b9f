"""Native tolerations beside extended ones. The scheduler, the kubelet and other controllers read only native ones."""

from collections.abc import Collection, Sequence

from taintwarden.engine.model import Effect, Taint, Toleration
from taintwarden.engine.operators import Operator
from taintwarden.engine.policy import Policy
from taintwarden_placement.admission.checking import value_at


def missing_natives(
    native: Sequence[object], extended: Sequence[Toleration], refused: Collection[str]
) -> list[dict[str, str]]:
    """Return an ``Exists`` for each key and effect that ``extended`` names and ``native`` does not cover.

    ``native`` are API objects. ``refused`` are the keys whose ``NoSchedule`` taints must not be tolerated.
    """
    covered = _covered(native)
    named = ((entry.key, entry.effect) for entry in extended if entry.key)
    kept_off = ((key, (effect or Effect.NO_EXECUTE) if key in refused else effect) for key, effect in named)
    wanted = dict.fromkeys(pair for pair in kept_off if pair[0] not in refused or pair[1] != Effect.NO_SCHEDULE)
    return [
        _native(key, effect)
        for key, effect in wanted
        if covered.isdisjoint(_covering(key, effect))
        and not (effect and (key, "") in wanted)  # a toleration for every effect is added, too
    ]


def unenforced_keys(native: Sequence[object], extended: Sequence[Toleration], evicting: Sequence[Policy]) -> list[str]:
    """Return the keys that ``extended`` compares for ``NoSchedule``, although no policy evicts by such a taint.

    ``native`` are API objects. A key that they tolerate whatever the value is not among them.
    """
    covered = _covered(native)
    compared = (
        entry.key
        for entry in extended
        if entry.key and entry.operator != Operator.EXISTS and entry.effect in ("", Effect.NO_SCHEDULE)
    )
    return [
        key
        for key in dict.fromkeys(compared)
        if not any(policy.selector_for(Taint(key, effect=Effect.NO_SCHEDULE)) for policy in evicting)
        and covered.isdisjoint(_covering(key, Effect.NO_SCHEDULE))
    ]


def _native(key: str, effect: str) -> dict[str, str]:
    toleration = {"key": key, "operator": Operator.EXISTS.value}
    return toleration | {"effect": Effect(effect).value} if effect else toleration


def _covering(key: str, effect: str) -> tuple[tuple[str, str], ...]:
    """Return key and effect of each toleration that covers taints of this key and effect."""
    return ("", ""), ("", effect), (key, ""), (key, effect)


def _covered(native: Sequence[object]) -> set[tuple[object, object]]:
    """Return key and effect of each native ``Exists`` without a time limit. An empty key or effect means any."""
    return {
        (value_at(entry, "key") or "", value_at(entry, "effect") or "")
        for entry in native
        if value_at(entry, "operator") == Operator.EXISTS and value_at(entry, "tolerationSeconds") is None
    }
