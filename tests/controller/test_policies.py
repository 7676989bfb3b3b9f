"""The policies in force: valid ones, the last valid version of others, and nothing of what is gone."""

from typing import Any

import pytest

from taintwarden.api.policies import parse_policy
from taintwarden.controller import policies
from taintwarden.controller.guards import GuardStore
from taintwarden.controller.policies import PolicyStore
from taintwarden.engine.machine import events
from taintwarden.engine.model import Mode, Policy

Json = dict[str, Any]


def stored(name: str = "sla", mode: str = "Enforce", *, uid: str = "", generation: int = 1, version: str = "") -> Json:
    """As the API server has it. The mode ``Wrong`` is one that nobody accepts."""
    meta = {"name": name, "uid": uid or f"uid-{name}", "generation": generation}
    return {
        "apiVersion": "taintwarden.io/v1alpha1",
        "kind": "TaintEvictionPolicy",
        "metadata": meta | ({"resourceVersion": version} if version else {}),
        "spec": {"taints": [{"key": "sla"}], "mode": mode},
    }


class Store(PolicyStore):
    """A store that keeps what it told."""

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
        """What was told last."""
        return {name: policy.mode for name, policy in self.published[-1].items()}


@pytest.fixture
def store() -> Store:
    return Store()


# -- a complete list --------------------------------------------------------------------------------------------------


def test_a_list_is_told_once(store):
    store.load([stored("a"), stored("b", "DryRun")])
    assert len(store.published) == 1
    assert store.modes == {"a": Mode.ENFORCE, "b": Mode.DRY_RUN}


def test_an_empty_list_is_told_too(store):
    store.load([])
    assert store.published == [{}]


def test_a_list_that_changes_nothing_is_not_told_again(store):
    store.load([stored("a")])
    store.load([stored("a")])
    assert len(store.published) == 1


def test_what_a_list_does_not_name_is_gone(store):
    store.load([stored("a"), stored("b")])
    store.load([stored("b")])
    assert store.modes == {"b": Mode.ENFORCE}
    assert set(store.observed) == {"b"}


def test_what_was_never_valid_goes_without_a_word(store):
    store.load([stored("a"), stored("b", "Wrong")])
    store.load([stored("a")])
    assert len(store.published) == 1
    assert set(store.observed) == {"a"}


def test_an_invalid_policy_costs_no_other(store):
    store.load([stored("a", "Wrong"), stored("b")])
    assert store.modes == {"b": Mode.ENFORCE}


def test_a_list_older_than_what_the_watch_brought_is_of_no_use(store):
    store.load([], "10")
    store.seen(stored("a", version="20"))
    store.load([], "15")
    assert store.modes == {"a": Mode.ENFORCE}


def test_a_list_older_than_a_deletion_does_not_revive(store):
    store.load([stored("a")], "10")
    store.gone(stored("a", version="20"))
    store.load([stored("a")], "15")
    assert store.modes == {}


def test_a_newer_list_counts(store):
    store.seen(stored("a", version="20"))
    store.load([], "25")
    assert store.modes == {}


# -- changes ----------------------------------------------------------------------------------------------------------


def test_a_new_policy_is_told(store):
    store.seen(stored("a"))
    assert store.modes == {"a": Mode.ENFORCE}
    assert store.observed["a"].problem == ""


def test_a_changed_policy_is_told_once(store):
    store.seen(stored("a"))
    store.seen(stored("a", "Paused", generation=2))
    assert len(store.published) == 2
    assert store.modes == {"a": Mode.PAUSED}
    assert store.observed["a"].generation == 2


def test_the_same_policy_again_is_not_told(store):
    store.seen(stored("a"))
    store.seen(stored("a"))
    assert len(store.published) == 1


def test_a_status_that_changes_is_no_change(store):
    store.seen(stored("a"))
    store.seen(stored("a") | {"status": {"pending": 7}})
    assert len(store.published) == 1


def test_a_deleted_policy_is_told(store):
    store.load([stored("a"), stored("b")])
    store.gone(stored("a"))
    assert store.modes == {"b": Mode.ENFORCE}
    assert set(store.observed) == {"b"}


def test_a_deleted_policy_nobody_knew_is_nothing(store):
    store.load([])
    store.gone(stored("a"))
    assert len(store.published) == 1


# -- an operator that only rehearses -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "treated"), [("Enforce", "DryRun"), ("DryRun", "DryRun"), ("Paused", "Paused")])
def test_in_a_dry_run_no_policy_enforces(mode, treated):
    store = Store(dry_run=True)
    store.load([stored("a", mode)])
    assert store.modes == {"a": Mode(treated)}


def test_in_a_dry_run_a_policy_set_to_enforce_later_does_not_either():
    store = Store(dry_run=True)
    store.seen(stored("a", "Paused"))
    store.seen(stored("a", "Enforce", generation=2))
    assert store.modes == {"a": Mode.DRY_RUN}


# -- invalid ones -----------------------------------------------------------------------------------------------------


def test_an_invalid_policy_keeps_its_last_valid_version_in_force(store):
    store.seen(stored("a", "DryRun"))
    store.seen(stored("a", "Wrong", generation=2))
    assert len(store.published) == 1
    assert store.modes == {"a": Mode.DRY_RUN}


def test_an_invalid_policy_says_why(store):
    store.seen(stored("a", "Wrong"))
    assert "spec.mode" in store.observed["a"].problem
    [(name, uid, reason)] = store.issues
    assert (name, uid) == ("a", "uid-a")
    assert reason == store.observed["a"].problem


def test_an_invalid_policy_is_complained_about_once(store):
    for _ in range(3):
        store.seen(stored("a", "Wrong"))
    assert len(store.issues) == 1


def test_every_new_fault_is_complained_about(store):
    store.seen(stored("a", "Wrong"))
    store.seen(stored("a", "Wronger", generation=2))
    store.seen(stored("a", "Wronger", generation=3))
    assert len(store.issues) == 3


def test_a_mended_policy_counts_again(store):
    store.seen(stored("a", "DryRun"))
    store.seen(stored("a", "Wrong", generation=2))
    store.seen(stored("a", "Enforce", generation=3))
    assert store.modes == {"a": Mode.ENFORCE}
    assert store.observed["a"].problem == ""


def test_a_policy_deleted_while_invalid_stops_acting(store):
    store.seen(stored("a"))
    store.seen(stored("a", "Wrong", generation=2))
    store.gone(stored("a", "Wrong", generation=2))
    assert store.modes == {}


# -- another one of the same name -------------------------------------------------------------------------------------


def test_another_policy_of_the_same_name_inherits_nothing(store):
    store.seen(stored("a"))
    store.seen(stored("a", "Wrong", uid="another"))
    assert store.modes == {}


def test_another_policy_of_the_same_name_counts_by_itself(store):
    store.seen(stored("a"))
    store.seen(stored("a", uid="another"))
    assert store.published[-1]["a"].uid == "another"


def test_another_policy_of_the_same_name_has_conditions_of_its_own(store):
    condition = {"type": "Accepted", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    store.seen(stored("a") | {"status": {"conditions": [condition]}})
    assert store.observed["a"].conditions == {"Accepted": ("True", "2020-01-01T00:00:00Z")}
    store.seen(stored("a", uid="another"))
    assert store.observed["a"].conditions == {}


# -- what stands in the stored status ---------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [None, {}, {"conditions": None}, {"conditions": []}])
@pytest.mark.parametrize("mode", ["Enforce", "Wrong"])
def test_a_status_may_be_empty(store, status, mode):
    store.seen(stored("a", mode) | ({"status": status} if status is not None else {}))
    assert store.observed["a"].conditions == {}


def test_the_stored_conditions_are_kept_of_an_invalid_policy_too(store):
    condition = {"type": "Accepted", "status": "False", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    store.seen(stored("a", "Wrong") | {"status": {"conditions": [condition]}})
    assert store.observed["a"].conditions == {"Accepted": ("False", "2020-01-01T00:00:00Z")}


# -- guards -----------------------------------------------------------------------------------------------------------


class Fed(PolicyStore):
    """A store that keeps what it tells a machine, in order."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.guards = GuardStore(self.events.append, None)  # type: ignore[arg-type]
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


def test_records_are_known_before_policies_are_in_force_and_resets_are_done_after(fed):
    fed.guards.lead(True)
    fed.load([to_reset("a"), to_reset("b")])
    assert fed.kinds == ["GuardRestored", "GuardRestored", "PoliciesChanged", "GuardReset", "GuardReset"]


def test_the_guard_of_an_invalid_policy_is_known_too(fed):
    """Its last valid version is in force."""
    fed.seen(stored("a"))
    fed.seen(stored("a", "Wrong", generation=2) | {"status": {"guard": {"open": False, "accepted": 3}}})
    assert fed.events[-1].record.accepted == 3


def test_a_reset_is_done_although_the_policy_is_the_same(fed):
    fed.seen(stored("a"))
    fed.guards.lead(True)
    fed.seen(to_reset())
    assert fed.kinds == ["GuardRestored", "PoliciesChanged", "GuardReset"]


def test_a_deleted_policy_has_no_guard(fed):
    fed.seen(to_reset())
    fed.gone(to_reset())
    fed.events.clear()
    fed.guards.lead(True)
    fed.guards.restore()
    assert fed.events == []


def test_what_the_watch_brings_late_is_no_other_reset(fed):
    fed.guards.lead(True)
    for policy, version in ((to_reset(), "10"), (stored("a"), "20"), (to_reset(), "10")):
        policy["metadata"]["resourceVersion"] = version
        fed.seen(policy)
    assert [event.reset for event in fed.events if isinstance(event, events.GuardReset)] == ["1", ""]


# -- what is older than what is known ---------------------------------------------------------------------------------


def test_an_old_version_does_not_resume_a_paused_policy(store):
    store.seen(stored("a", "Paused", generation=2, version="20"))
    store.seen(stored("a", "Enforce", generation=1, version="10"))
    assert store.modes == {"a": Mode.PAUSED}
    assert store.observed["a"].generation == 2


def test_an_old_version_of_a_policy_that_was_listed_does_not_count(store):
    store.load([stored("a", "Paused", version="20")], "25")
    store.seen(stored("a", "Enforce", version="10"))
    assert store.modes == {"a": Mode.PAUSED}


def test_the_end_of_a_namesake_is_not_its_own(store):
    store.seen(stored("a", version="20", uid="new"))
    store.gone(stored("a", version="15", uid="old"))
    assert store.modes == {"a": Mode.ENFORCE}


def test_a_namesake_that_is_older_does_not_come_back(store):
    store.seen(stored("a", version="20", uid="new"))
    store.seen(stored("a", "Paused", version="15", uid="old"))
    assert store.modes == {"a": Mode.ENFORCE}


def test_what_was_deleted_does_not_come_back(store):
    store.gone(stored("a", version="20"))
    store.seen(stored("a", version="10"))
    assert store.observed == {}


def test_what_a_list_did_not_name_does_not_come_back(store):
    store.load([], "25")
    store.seen(stored("a", version="20"))
    assert store.observed == {}


def test_a_new_policy_of_a_deleted_name_counts(store):
    store.gone(stored("a", version="20", uid="old"))
    store.load([stored("a", version="22", uid="new")], "25")
    assert store.modes == {"a": Mode.ENFORCE}


def test_a_list_counts_for_all_that_is_not_newer_than_it(store):
    store.load([stored("a", version="5"), stored("b", version="6")], "10")
    store.seen(stored("c", version="20"))
    store.load([stored("a", "Paused", version="12")], "15")
    assert store.modes == {"a": Mode.PAUSED, "c": Mode.ENFORCE}


def test_a_list_does_not_take_back_what_is_newer_than_it(store):
    store.load([stored("a", version="5")], "10")
    store.seen(stored("a", "Paused", version="20"))
    store.load([stored("a", version="5")], "15")
    assert store.modes == {"a": Mode.PAUSED}


def test_after_a_restore_the_list_replaces_everything(store):
    store.load([stored("a", "Paused", version="50"), stored("b", version="60")], "100")
    store.seen(stored("c", version="110"))
    store.load([stored("a", version="7")], "10")
    assert store.modes == {"a": Mode.ENFORCE}
    store.seen(stored("d", version="11"))
    assert set(store.modes) == {"a", "d"}


def test_what_was_deleted_after_the_backup_is_there_again_after_the_restore(store):
    store.load([stored("a", version="50")], "60")
    store.gone(stored("a", version="70"))
    store.load([stored("a", version="50")], "55")
    assert store.modes == {"a": Mode.ENFORCE}


def test_what_is_as_it_was_is_not_read_again(monkeypatch):
    parsed: list[str] = []

    def parse(obj: Json) -> Policy:
        parsed.append(obj["metadata"]["name"])
        return parse_policy(obj)

    monkeypatch.setattr(policies, "parse_policy", parse)
    store = Store()
    for version in ("30", "40"):
        store.load([stored("a", version="10"), stored("b", version=version)], version)
    store.seen(stored("a", version="10"))
    assert parsed == ["a", "b", "b"]


# -- whether the watch works ------------------------------------------------------------------------------------------


def listed(store: Store, *objects: Json, version: str) -> Store:
    store.load([], "1")
    store.load(objects, version)
    return store


def test_the_first_list_misses_nothing(store):
    store.load([stored("a", version="7")], "10")
    assert not store.take_missed()


def test_a_watch_that_does_not_bring_what_a_list_had_is_deaf(store):
    assert listed(store, stored("a", version="7"), version="10").take_missed()
    assert not store.take_missed(), "it is told once"


@pytest.mark.parametrize(("version", "missed"), [("6", True), ("7", False), ("8", False)])
def test_a_watch_that_brings_it_soon_is_not(store, version, missed):
    listed(store, stored("a", version="7"), version="10").seen(stored("a", version=version))
    assert store.take_missed() is missed


def test_a_list_that_brings_what_the_watch_has_brought_misses_nothing(store):
    store.load([], "1")
    store.seen(stored("a", version="7"))
    store.load([stored("a", version="7")], "10")
    assert not store.take_missed()


@pytest.mark.parametrize("heard", [False, True])
def test_a_deletion_that_only_a_list_shows_is_missed(store, heard):
    store.load([stored("a", version="7")], "8")
    store.load([], "10")
    if heard:
        store.gone(stored("a", version="9"))
    assert store.take_missed() is not heard
