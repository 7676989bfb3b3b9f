"""One key has one publisher."""

from publisher.scene import body
from taintwarden_publisher.claims import KeyClaim, claim, conflict, source_keys

FIRST, SECOND = KeyClaim("2026-01-01", "b", "sla"), KeyClaim("2026-01-02", "a", "sla")


def test_a_claim_is_read_from_the_object():
    assert claim(body()) == KeyClaim("2026-11-01T00:00:00Z", "sla", "sla")


def test_the_oldest_object_has_the_key():
    assert conflict(FIRST, [FIRST, SECOND], {}) == ""
    assert conflict(SECOND, [FIRST, SECOND], {}) == (
        "TaintPublisher b has the key sla already: choose another key, or delete one of the two"
    )


def test_of_two_objects_of_one_age_the_first_by_name_has_the_key():
    twin = KeyClaim("2026-01-01", "a", "sla")
    assert conflict(twin, [FIRST, twin], {}) == ""
    assert "TaintPublisher a" in conflict(FIRST, [FIRST, twin], {})


def test_objects_with_another_key_and_unknown_ones_do_not_conflict():
    assert conflict(SECOND, [SECOND, KeyClaim("2025-01-01", "c", "other")], {}) == conflict(SECOND, [], {}) == ""


def test_a_policy_that_derives_the_key_conflicts():
    policy = {"spec": {"taints": [{"key": "sla", "from": {"label": "x"}}, {"key": "other"}]}}
    assert source_keys(policy) == ["sla"]
    assert "TaintEvictionPolicy p reads the key sla from the node" in conflict(FIRST, [FIRST], {"sla": ["p"]})


def test_a_policy_without_taints_derives_no_key():
    assert source_keys({}) == []
