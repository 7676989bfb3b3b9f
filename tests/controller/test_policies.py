"""The policies in force: valid ones, the last valid version of others, and nothing of what is gone."""

from typing import Any

import pytest

from taintwarden.api.policies import parse_policy
from taintwarden.controller import policies
from taintwarden.controller.guards import GuardBook
from taintwarden.controller.policies import PolicyBook
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


class Book(PolicyBook):
    """A book that keeps what it told."""

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
def book() -> Book:
    return Book()


# -- a complete list --------------------------------------------------------------------------------------------------


def test_a_list_is_told_once(book):
    book.load([stored("a"), stored("b", "DryRun")])
    assert len(book.published) == 1
    assert book.modes == {"a": Mode.ENFORCE, "b": Mode.DRY_RUN}


def test_an_empty_list_is_told_too(book):
    book.load([])
    assert book.published == [{}]


def test_a_list_that_changes_nothing_is_not_told_again(book):
    book.load([stored("a")])
    book.load([stored("a")])
    assert len(book.published) == 1


def test_what_a_list_does_not_name_is_gone(book):
    book.load([stored("a"), stored("b")])
    book.load([stored("b")])
    assert book.modes == {"b": Mode.ENFORCE}
    assert set(book.standings) == {"b"}


def test_what_was_never_valid_goes_without_a_word(book):
    book.load([stored("a"), stored("b", "Wrong")])
    book.load([stored("a")])
    assert len(book.published) == 1
    assert set(book.standings) == {"a"}


def test_an_invalid_policy_costs_no_other(book):
    book.load([stored("a", "Wrong"), stored("b")])
    assert book.modes == {"b": Mode.ENFORCE}


def test_a_list_older_than_what_the_watch_brought_is_of_no_use(book):
    book.load([], "10")
    book.seen(stored("a", version="20"))
    book.load([], "15")
    assert book.modes == {"a": Mode.ENFORCE}


def test_a_list_older_than_a_deletion_does_not_revive(book):
    book.load([stored("a")], "10")
    book.gone(stored("a", version="20"))
    book.load([stored("a")], "15")
    assert book.modes == {}


def test_a_newer_list_counts(book):
    book.seen(stored("a", version="20"))
    book.load([], "25")
    assert book.modes == {}


# -- changes ----------------------------------------------------------------------------------------------------------


def test_a_new_policy_is_told(book):
    book.seen(stored("a"))
    assert book.modes == {"a": Mode.ENFORCE}
    assert book.standings["a"].problem == ""


def test_a_changed_policy_is_told_once(book):
    book.seen(stored("a"))
    book.seen(stored("a", "Paused", generation=2))
    assert len(book.published) == 2
    assert book.modes == {"a": Mode.PAUSED}
    assert book.standings["a"].generation == 2


def test_the_same_policy_again_is_not_told(book):
    book.seen(stored("a"))
    book.seen(stored("a"))
    assert len(book.published) == 1


def test_a_status_that_changes_is_no_change(book):
    book.seen(stored("a"))
    book.seen(stored("a") | {"status": {"pending": 7}})
    assert len(book.published) == 1


def test_a_deleted_policy_is_told(book):
    book.load([stored("a"), stored("b")])
    book.gone(stored("a"))
    assert book.modes == {"b": Mode.ENFORCE}
    assert set(book.standings) == {"b"}


def test_a_deleted_policy_nobody_knew_is_nothing(book):
    book.load([])
    book.gone(stored("a"))
    assert len(book.published) == 1


# -- an operator that only rehearses -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "treated"), [("Enforce", "DryRun"), ("DryRun", "DryRun"), ("Paused", "Paused")])
def test_in_a_dry_run_no_policy_enforces(mode, treated):
    book = Book(dry_run=True)
    book.load([stored("a", mode)])
    assert book.modes == {"a": Mode(treated)}


def test_in_a_dry_run_a_policy_set_to_enforce_later_does_not_either():
    book = Book(dry_run=True)
    book.seen(stored("a", "Paused"))
    book.seen(stored("a", "Enforce", generation=2))
    assert book.modes == {"a": Mode.DRY_RUN}


# -- invalid ones -----------------------------------------------------------------------------------------------------


def test_an_invalid_policy_keeps_its_last_valid_version_in_force(book):
    book.seen(stored("a", "DryRun"))
    book.seen(stored("a", "Wrong", generation=2))
    assert len(book.published) == 1
    assert book.modes == {"a": Mode.DRY_RUN}


def test_an_invalid_policy_says_why(book):
    book.seen(stored("a", "Wrong"))
    assert "spec.mode" in book.standings["a"].problem
    [(name, uid, reason)] = book.issues
    assert (name, uid) == ("a", "uid-a")
    assert reason == book.standings["a"].problem


def test_an_invalid_policy_is_complained_about_once(book):
    for _ in range(3):
        book.seen(stored("a", "Wrong"))
    assert len(book.issues) == 1


def test_every_new_fault_is_complained_about(book):
    book.seen(stored("a", "Wrong"))
    book.seen(stored("a", "Wronger", generation=2))
    book.seen(stored("a", "Wronger", generation=3))
    assert len(book.issues) == 3


def test_a_mended_policy_counts_again(book):
    book.seen(stored("a", "DryRun"))
    book.seen(stored("a", "Wrong", generation=2))
    book.seen(stored("a", "Enforce", generation=3))
    assert book.modes == {"a": Mode.ENFORCE}
    assert book.standings["a"].problem == ""


def test_a_policy_deleted_while_invalid_stops_acting(book):
    book.seen(stored("a"))
    book.seen(stored("a", "Wrong", generation=2))
    book.gone(stored("a", "Wrong", generation=2))
    assert book.modes == {}


# -- another one of the same name -------------------------------------------------------------------------------------


def test_another_policy_of_the_same_name_inherits_nothing(book):
    book.seen(stored("a"))
    book.seen(stored("a", "Wrong", uid="another"))
    assert book.modes == {}


def test_another_policy_of_the_same_name_counts_by_itself(book):
    book.seen(stored("a"))
    book.seen(stored("a", uid="another"))
    assert book.published[-1]["a"].uid == "another"


def test_another_policy_of_the_same_name_has_conditions_of_its_own(book):
    condition = {"type": "Accepted", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    book.seen(stored("a") | {"status": {"conditions": [condition]}})
    assert book.standings["a"].conditions == {"Accepted": ("True", "2020-01-01T00:00:00Z")}
    book.seen(stored("a", uid="another"))
    assert book.standings["a"].conditions == {}


# -- what stands in the stored status ---------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [None, {}, {"conditions": None}, {"conditions": []}])
@pytest.mark.parametrize("mode", ["Enforce", "Wrong"])
def test_a_status_may_be_empty(book, status, mode):
    book.seen(stored("a", mode) | ({"status": status} if status is not None else {}))
    assert book.standings["a"].conditions == {}


def test_the_stored_conditions_are_kept_of_an_invalid_policy_too(book):
    condition = {"type": "Accepted", "status": "False", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    book.seen(stored("a", "Wrong") | {"status": {"conditions": [condition]}})
    assert book.standings["a"].conditions == {"Accepted": ("False", "2020-01-01T00:00:00Z")}


# -- guards -----------------------------------------------------------------------------------------------------------


class Fed(PolicyBook):
    """A book that keeps what it tells a machine, in order."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.guards = GuardBook(self.events.append, None)  # type: ignore[arg-type]
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
    assert fed.kinds.count("GuardReset") == 1


# -- what is older than what is known ---------------------------------------------------------------------------------


def test_an_old_version_does_not_resume_a_paused_policy(book):
    book.seen(stored("a", "Paused", generation=2, version="20"))
    book.seen(stored("a", "Enforce", generation=1, version="10"))
    assert book.modes == {"a": Mode.PAUSED}
    assert book.standings["a"].generation == 2


def test_an_old_version_of_a_policy_that_was_listed_does_not_count(book):
    book.load([stored("a", "Paused", version="20")], "25")
    book.seen(stored("a", "Enforce", version="10"))
    assert book.modes == {"a": Mode.PAUSED}


def test_the_end_of_a_namesake_is_not_its_own(book):
    book.seen(stored("a", version="20", uid="new"))
    book.gone(stored("a", version="15", uid="old"))
    assert book.modes == {"a": Mode.ENFORCE}


def test_a_namesake_that_is_older_does_not_come_back(book):
    book.seen(stored("a", version="20", uid="new"))
    book.seen(stored("a", "Paused", version="15", uid="old"))
    assert book.modes == {"a": Mode.ENFORCE}


def test_what_was_deleted_does_not_come_back(book):
    book.gone(stored("a", version="20"))
    book.seen(stored("a", version="10"))
    assert book.standings == {}


def test_what_a_list_did_not_name_does_not_come_back(book):
    book.load([], "25")
    book.seen(stored("a", version="20"))
    assert book.standings == {}


def test_a_new_policy_of_a_deleted_name_counts(book):
    book.gone(stored("a", version="20", uid="old"))
    book.load([stored("a", version="22", uid="new")], "25")
    assert book.modes == {"a": Mode.ENFORCE}


def test_a_list_counts_for_all_that_is_not_newer_than_it(book):
    book.load([stored("a", version="5"), stored("b", version="6")], "10")
    book.seen(stored("c", version="20"))
    book.load([stored("a", "Paused", version="12")], "15")
    assert book.modes == {"a": Mode.PAUSED, "c": Mode.ENFORCE}


def test_a_list_does_not_take_back_what_is_newer_than_it(book):
    book.load([stored("a", version="5")], "10")
    book.seen(stored("a", "Paused", version="20"))
    book.load([stored("a", version="5")], "15")
    assert book.modes == {"a": Mode.PAUSED}


def test_after_a_restore_the_list_replaces_everything(book):
    book.load([stored("a", "Paused", version="50"), stored("b", version="60")], "100")
    book.seen(stored("c", version="110"))
    book.load([stored("a", version="7")], "10")
    assert book.modes == {"a": Mode.ENFORCE}
    book.seen(stored("d", version="11"))
    assert set(book.modes) == {"a", "d"}


def test_what_was_deleted_after_the_backup_is_there_again_after_the_restore(book):
    book.load([stored("a", version="50")], "60")
    book.gone(stored("a", version="70"))
    book.load([stored("a", version="50")], "55")
    assert book.modes == {"a": Mode.ENFORCE}


def test_what_is_as_it_was_is_not_read_again(monkeypatch):
    parsed: list[str] = []

    def parse(obj: Json) -> Policy:
        parsed.append(obj["metadata"]["name"])
        return parse_policy(obj)

    monkeypatch.setattr(policies, "parse_policy", parse)
    book = Book()
    for version in ("30", "40"):
        book.load([stored("a", version="10"), stored("b", version=version)], version)
    book.seen(stored("a", version="10"))
    assert parsed == ["a", "b", "b"]


# -- whether the watch works ------------------------------------------------------------------------------------------


def listed(book: Book, *objects: Json, version: str) -> Book:
    book.load([], "1")
    book.load(objects, version)
    return book


def test_the_first_list_misses_nothing(book):
    book.load([stored("a", version="7")], "10")
    assert not book.take_missed()


def test_a_watch_that_does_not_bring_what_a_list_had_is_deaf(book):
    assert listed(book, stored("a", version="7"), version="10").take_missed()
    assert not book.take_missed(), "it is told once"


@pytest.mark.parametrize(("version", "missed"), [("6", True), ("7", False), ("8", False)])
def test_a_watch_that_brings_it_soon_is_not(book, version, missed):
    listed(book, stored("a", version="7"), version="10").seen(stored("a", version=version))
    assert book.take_missed() is missed


def test_a_list_that_brings_what_the_watch_has_brought_misses_nothing(book):
    book.load([], "1")
    book.seen(stored("a", version="7"))
    book.load([stored("a", version="7")], "10")
    assert not book.take_missed()


@pytest.mark.parametrize("heard", [False, True])
def test_a_deletion_that_only_a_list_shows_is_missed(book, heard):
    book.load([stored("a", version="7")], "8")
    book.load([], "10")
    if heard:
        book.gone(stored("a", version="9"))
    assert book.take_missed() is not heard
