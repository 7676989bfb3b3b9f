"""The policies in force are the valid ones and the last valid version of others, unless they were deleted."""

from typing import Any

import msgspec
import pytest

from taintwarden.api.policies import parse_policy
from taintwarden.controller.stores import policy_store
from taintwarden.controller.stores.guard_store import GuardStore
from taintwarden.controller.stores.policy_store import PolicyStore
from taintwarden.controller.words.policy_changes import PolicyChanges
from taintwarden.engine import events
from taintwarden.engine.policy import Mode, Policy

Json = dict[str, Any]


def stored(name: str = "sla", mode: str = "Enforce", *, uid: str = "", generation: int = 1) -> Json:
    """A policy as the API server stores it. The mode ``Wrong`` is invalid."""
    return {
        "apiVersion": "taintwarden.io/v1alpha1",
        "kind": "TaintEvictionPolicy",
        "metadata": {"name": name, "uid": uid or f"uid-{name}", "generation": generation},
        "spec": {"taints": [{"key": "sla"}], **({"paused": True} if mode == "Paused" else {"mode": mode})},
    }


class Store(PolicyStore):
    """A store that keeps the policies that it published, and the issues."""

    def __init__(self, *, dry_run: bool = False) -> None:
        self.published: list[dict[str, Policy]] = []
        self.issues: list[tuple[str, str, str]] = []
        super().__init__(
            lambda policies: self.published.append({policy.name: policy for policy in policies}),
            lambda *issue: self.issues.append(issue),
            dry_run=dry_run,
        )

    @property
    def modes(self) -> dict[str, Mode]:
        """The modes of the policies that were published last."""
        return {name: policy.mode for name, policy in self.published[-1].items()}


@pytest.fixture
def store() -> Store:
    return Store()


# -- a complete list --------------------------------------------------------------------------------------------------


def test_a_list_is_published_once(store):
    store.load([stored("a"), stored("b", "DryRun")])
    assert len(store.published) == 1
    assert store.modes == {"a": Mode.ENFORCE, "b": Mode.DRY_RUN}


def test_an_empty_list_changes_nothing(store):
    store.load([])
    assert store.published == []


def test_a_list_without_changes_is_not_published_again(store):
    store.load([stored("a")])
    store.load([stored("a")])
    assert len(store.published) == 1


def test_a_policy_that_a_list_does_not_name_is_gone(store):
    store.load([stored("a"), stored("b")])
    store.load([stored("b")])
    assert store.modes == {"b": Mode.ENFORCE}
    assert set(store.observed) == {"b"}


def test_the_deletion_of_a_policy_that_was_never_valid_publishes_nothing(store):
    store.load([stored("a"), stored("b", "Wrong")])
    store.load([stored("a")])
    assert len(store.published) == 1
    assert set(store.observed) == {"a"}


@pytest.mark.parametrize("before", [[], [stored("a")]])
def test_a_setting_of_a_later_version_leaves_the_last_valid_version_in_force(store, before):
    """After a start there is no valid version, so that the policy evicts no pod."""
    store.load(before)
    later = stored("a", generation=2)
    later["spec"]["limits"] = {"guard": {"action": "OfALaterVersion"}}
    store.seen(later)
    assert [policy.generation for policy in store.valid.values()] == [1] * len(before)
    assert "spec.limits.guard.action" in store.issues[-1][2]


# -- changes ----------------------------------------------------------------------------------------------------------


def test_a_changed_policy_is_published_once(store):
    store.seen(stored("a"))
    store.seen(stored("a", "Paused", generation=2))
    assert len(store.published) == 2
    assert store.modes == {"a": Mode.PAUSED}
    assert store.observed["a"].generation == 2


def test_the_deletion_of_a_policy_is_published(store):
    store.load([stored("a"), stored("b")])
    store.gone("a", "uid-a")
    assert store.modes == {"b": Mode.ENFORCE}
    assert set(store.observed) == {"b"}


def test_the_deletion_of_an_unknown_policy_publishes_nothing(store):
    store.load([stored("b")])
    store.gone("a", "uid-a")
    assert len(store.published) == 1


def test_a_deleted_policy_whose_name_could_not_be_read_is_found_by_its_uid(store):
    store.load([stored("a"), stored("b")])
    store.gone("unknown", "uid-a")
    assert store.modes == {"b": Mode.ENFORCE}


def test_each_generation_of_a_spec_is_parsed_once(monkeypatch):
    """Changes of metadata and status do not change the generation."""
    parsed: list[str] = []

    def parse(obj: Json) -> Policy:
        parsed.append(obj["metadata"]["name"])
        return parse_policy(obj)

    monkeypatch.setattr(policy_store, "parse_policy", parse)
    store = Store()
    store.load([stored("a"), stored("b")])
    store.load([stored("a"), stored("b", generation=2)])
    store.seen(stored("a") | {"status": {"pending": 7}})
    assert parsed == ["a", "b", "b"]


def test_conditions_of_a_known_generation_are_followed(store):
    """A replica that begins to lead keeps the times that the leader before has written."""
    store.seen(stored("a"))
    condition = {"type": "Accepted", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    without = [{"type": "Retained", "status": "True"}, {"type": "Progressing", "lastTransitionTime": "2020"}]
    without += [{"type": 7, "status": "True", "lastTransitionTime": "2020"}]
    store.seen(stored("a") | {"status": {"conditions": [condition, *without]}})
    assert store.observed["a"].conditions == {"Accepted": ("True", "2020-01-01T00:00:00Z")}


@pytest.mark.parametrize("generation", [{"generation": 0}, {}])
def test_every_version_without_a_generation_is_parsed(store, generation):
    """A policy from a file has no generation."""
    for mode in ("Enforce", "Paused"):
        obj = stored("a", mode)
        del obj["metadata"]["generation"]
        obj["metadata"] |= generation
        store.seen(obj)
    assert store.modes == {"a": Mode.PAUSED}


# -- an operator that only rehearses -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "treated"), [("Enforce", "DryRun"), ("DryRun", "DryRun"), ("Paused", "Paused")])
def test_in_a_dry_run_no_policy_enforces(mode, treated):
    store = Store(dry_run=True)
    store.load([stored("a", mode)])
    assert store.modes == {"a": Mode(treated)}


@pytest.mark.parametrize("mode", ["Enforce", "DryRun"])
def test_in_a_dry_run_all_policies_rehearse(mode):
    store = Store(dry_run=True)
    store.seen(stored("a", mode))
    assert store.published[-1]["a"].rehearses


# -- invalid ones -----------------------------------------------------------------------------------------------------


def test_an_invalid_policy_keeps_its_last_valid_version_in_force(store):
    store.seen(stored("a", "DryRun"))
    store.seen(stored("a", "Wrong", generation=2))
    assert len(store.published) == 1
    assert store.modes == {"a": Mode.DRY_RUN}


def test_an_invalid_policy_is_reported_with_the_reason(store):
    store.seen(stored("a", "Wrong"))
    assert "spec.mode" in store.observed["a"].problem
    [(name, uid, reason)] = store.issues
    assert (name, uid) == ("a", "uid-a")
    assert reason == store.observed["a"].problem


def test_an_invalid_policy_is_reported_once(store):
    for _ in range(3):
        store.seen(stored("a", "Wrong"))
    assert len(store.issues) == 1


@pytest.mark.parametrize("is_seen", [True, False], ids=["its deletion is seen", "its deletion is not seen"])
def test_a_namesake_with_the_same_fault_is_reported(store, is_seen):
    store.seen(stored("a", "Wrong"))
    if is_seen:
        store.gone("a", "uid-a")
    store.seen(stored("a", "Wrong", uid="another"))
    assert [uid for _, uid, reason in store.issues if reason] == ["uid-a", "another"]


def test_every_invalid_generation_is_reported(store):
    store.seen(stored("a", "Wrong"))
    store.seen(stored("a", "Wronger", generation=2))
    store.seen(stored("a", "Wronger", generation=3))
    assert len(store.issues) == 3


def test_a_corrected_policy_counts_again(store):
    store.seen(stored("a", "DryRun"))
    store.seen(stored("a", "Wrong", generation=2))
    store.seen(stored("a", "Enforce", generation=3))
    assert store.modes == {"a": Mode.ENFORCE}
    assert store.observed["a"].problem == ""


@pytest.mark.parametrize("ends", ["correct", "delete"])
def test_the_end_of_a_fault_is_passed_on(store, ends):
    store.seen(stored("a", "Wrong"))
    if ends == "correct":
        store.seen(stored("a", generation=2))
    else:
        store.gone("a", "uid-a")
    store.seen(stored("a", generation=3))
    assert store.issues[1:] == [("a", "uid-a", "")]


def test_a_policy_that_is_deleted_while_invalid_is_not_in_force(store):
    store.seen(stored("a"))
    store.seen(stored("a", "Wrong", generation=2))
    store.gone("a", "uid-a")
    assert store.modes == {}


# -- another one of the same name -------------------------------------------------------------------------------------


def test_another_policy_of_the_same_name_inherits_nothing(store):
    store.seen(stored("a"))
    store.seen(stored("a", "Wrong", uid="another"))
    assert store.modes == {}


def test_another_policy_of_the_same_name_has_conditions_of_its_own(store):
    condition = {"type": "Accepted", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    store.seen(stored("a") | {"status": {"conditions": [condition]}})
    assert store.observed["a"].conditions == {"Accepted": ("True", "2020-01-01T00:00:00Z")}
    store.seen(stored("a", uid="another"))
    assert store.observed["a"].conditions == {}


# -- the stored status ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [None, {}, {"conditions": None}, {"conditions": []}])
@pytest.mark.parametrize("mode", ["Enforce", "Wrong"])
def test_a_policy_with_an_empty_status_has_no_conditions(store, status, mode):
    store.seen(stored("a", mode) | ({"status": status} if status is not None else {}))
    assert store.observed["a"].conditions == {}


def test_the_stored_conditions_of_an_invalid_policy_are_kept_too(store):
    condition = {"type": "Accepted", "status": "False", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    store.seen(stored("a", "Wrong") | {"status": {"conditions": [condition]}})
    assert store.observed["a"].conditions == {"Accepted": ("False", "2020-01-01T00:00:00Z")}


# -- guards -----------------------------------------------------------------------------------------------------------


class Fed(PolicyStore):
    """A store that keeps the events that it feeds a machine, in order."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.guards = GuardStore(self.events.append)
        super().__init__(
            lambda policies: self.events.append(events.PoliciesChanged(policies)), lambda *_: None, self.guards
        )

    @property
    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self.events]


def to_reset(name: str = "a") -> Json:
    policy = stored(name)
    policy["metadata"]["annotations"] = {"taintwarden.io/guard-reset": "1"}
    return policy


@pytest.fixture
def fed() -> Fed:
    return Fed()


def test_guard_records_are_fed_before_policies_and_resets_after_them(fed):
    fed.guards.set_leading(True)
    fed.load([to_reset("a"), to_reset("b")])
    assert fed.kinds == ["GuardRestored", "GuardRestored", "PoliciesChanged", "GuardReset", "GuardReset"]


def test_the_guard_record_of_an_invalid_policy_is_fed_too(fed):
    """Its last valid version is in force."""
    fed.seen(stored("a"))
    fed.seen(stored("a", "Wrong", generation=2) | {"status": {"guard": {"term": 3}}})
    assert fed.events[-1].record.term == 3


def test_a_reset_is_fed_even_if_the_policy_did_not_change(fed):
    fed.seen(stored("a"))
    fed.guards.set_leading(True)
    fed.seen(to_reset())
    assert fed.kinds == ["GuardRestored", "PoliciesChanged", "GuardReset"]


def test_a_deleted_policy_has_no_guard(fed):
    fed.seen(to_reset())
    fed.gone("a", "uid-a")
    fed.events.clear()
    fed.guards.set_leading(True)
    fed.guards.restore_records()
    assert fed.events == []


def reading(name: str, source: str, created: str, generation: int = 1) -> Json:
    """A policy that derives a taint."""
    policy = stored(name, generation=generation)
    policy["metadata"]["creationTimestamp"] = created
    taint = {"key": "example.com/version", "from": {"nodeInfo": source}}
    return policy | {
        "spec": {"taints": [taint]},
        "status": {"guard": {"trippedAt": "2026-01-01T00:00:00Z"}},
    }


def test_the_guard_record_is_fed_again_when_a_contradiction_ends(fed):
    """The policy was not in force meanwhile, and a leader does not read the status of its own guards."""
    fed.seen(
        reading("old", "kernelVersion", "2020-01-01T00:00:00Z"), reading("new", "kernelVersion", "2021-01-01T00:00:00Z")
    )
    fed.guards.set_leading(True)
    fed.seen(reading("new", "kubeletVersion", "2021-01-01T00:00:00Z", generation=2))
    fed.events.clear()
    fed.seen(reading("new", "kernelVersion", "2021-01-01T00:00:00Z", generation=3))
    assert fed.kinds == ["GuardRestored", "PoliciesChanged"]
    assert (fed.events[0].policy, fed.events[0].record.tripped_at is None) == ("new", False)


def test_the_guard_record_of_an_earlier_version_is_fed_again_when_a_contradiction_ends(fed):
    """The newest version is invalid, so the last valid one is in force."""
    fed.seen(reading("old", "kernelVersion", "2020-01-01T00:00:00Z"))
    fed.seen(reading("new", "kubeletVersion", "2021-01-01T00:00:00Z"))
    fed.guards.set_leading(True)
    fed.seen(reading("new", "wrong", "2021-01-01T00:00:00Z", generation=2))
    fed.events.clear()
    fed.gone("old", "uid-old")
    assert fed.kinds == ["GuardRestored", "PoliciesChanged"]


# -- what edits change ------------------------------------------------------------------------------------------------


def following(reported: list[tuple[str, ...]]) -> PolicyStore:
    return PolicyStore(lambda _: None, lambda *_: None, changes=PolicyChanges(lambda *change: reported.append(change)))


@pytest.mark.parametrize("encoded", [lambda spec: spec, lambda spec: msgspec.Raw(msgspec.json.encode(spec))])
def test_the_fields_that_an_edit_changed_are_reported(encoded):
    reported: list[tuple[str, ...]] = []
    store = following(reported)
    store.seen(stored("a", "DryRun"))
    edited = stored("a", "Enforce", generation=2)
    store.seen(edited | {"spec": encoded(edited["spec"])})
    assert reported == [("a", "uid-a", "edited", "spec.mode is Enforce, it was DryRun")]


def test_a_status_is_no_change():
    reported: list[tuple[str, ...]] = []
    store = following(reported)
    store.seen(stored("a", "DryRun"))
    store.seen(stored("a", "DryRun") | {"status": {"pending": 1}})
    assert reported == []


def test_a_namesake_is_no_change():
    reported: list[tuple[str, ...]] = []
    store = following(reported)
    store.seen(stored("a", "DryRun"))
    store.seen(stored("a", "Enforce", uid="other"))
    assert reported == []


def test_a_policy_that_comes_back_after_its_deletion_is_no_change():
    reported: list[tuple[str, ...]] = []
    store = following(reported)
    store.seen(stored("a", "DryRun"))
    store.gone("a", "uid-a")
    store.seen(stored("a", "Enforce", generation=2))
    assert reported == []


# -- two sources for one key ------------------------------------------------------------------------------------------


def derived(name: str, source: str, *, created: int = 1, generation: int = 1) -> Json:
    found = stored(name, generation=generation)
    found["metadata"]["creationTimestamp"] = f"2026-01-0{created}T00:00:00Z"
    found["spec"] = {"taints": [{"key": "kubelet", "from": {"nodeInfo": source}}]}
    return found


def test_the_younger_of_two_policies_that_contradict_is_not_in_force(store):
    store.load([derived("a", "kubeletVersion", created=2), derived("b", "kernelVersion", created=1)])
    assert list(store.published[-1]) == ["b"]
    assert "policy b, which is older" in store.observed["a"].problem
    assert [(name, why) for name, _, why in store.issues] == [("a", store.observed["a"].problem)]


def test_the_younger_policy_is_in_force_once_the_older_is_gone(store):
    store.load([derived("a", "kubeletVersion"), derived("b", "kernelVersion")])
    store.gone("a", "uid-a")
    assert (list(store.published[-1]), store.observed["b"].problem) == (["b"], "")


def test_the_younger_policy_is_in_force_once_they_agree(store):
    store.load([derived("a", "kubeletVersion"), derived("b", "kernelVersion")])
    store.seen(derived("b", "kubeletVersion", generation=2))
    assert (sorted(store.published[-1]), store.observed["b"].problem) == (["a", "b"], "")


def test_an_edit_of_the_older_policy_can_end_the_younger(store):
    store.load([derived("a", "kubeletVersion"), derived("b", "kubeletVersion")])
    store.seen(derived("a", "kernelVersion", generation=2))
    assert list(store.published[-1]) == ["a"]
    assert store.observed["b"].problem


def test_a_contradiction_is_reported_once(store):
    store.load([derived("a", "kubeletVersion"), derived("b", "kernelVersion")])
    store.seen(stored("c"))
    store.seen(stored("d"))
    assert len(store.issues) == 1


def test_a_policy_that_is_invalid_and_contradicts_is_reported_as_invalid(store):
    store.load([derived("a", "kubeletVersion"), derived("b", "kubeletVersion")])
    store.seen(stored("b", "Wrong", generation=2))
    store.seen(derived("a", "kernelVersion", generation=2))
    assert "spec.mode" in store.observed["b"].problem
    assert list(store.published[-1]) == ["a"]


def test_policies_contradict_the_valid_version_of_an_invalid_one(store):
    names = {"a": "kubeletVersion", "b": "kubeletVersion", "c": "kernelVersion"}
    store.load([derived(name, source) for name, source in names.items()])
    store.seen(stored("a", "Wrong", generation=2))
    store.seen(derived("b", "kernelVersion", generation=2))
    assert [name for name, one in store.observed.items() if one.problem] == ["a", "b", "c"]
    assert list(store.published[-1]) == ["a"]


def test_a_contradiction_that_comes_back_is_reported_again(store):
    store.load([derived("a", "kubeletVersion"), derived("b", "kernelVersion")])
    store.seen(derived("b", "kubeletVersion", generation=2))
    store.seen(derived("b", "kernelVersion", generation=3))
    assert [name for name, _, reason in store.issues if reason] == ["b", "b"]
    store.seen(derived("a", "kernelVersion", generation=2))
    store.seen(derived("a", "kubeletVersion", generation=3))
    assert [name for name, _, reason in store.issues if reason] == ["b", "b", "b"]
