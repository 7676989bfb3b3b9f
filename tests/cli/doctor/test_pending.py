"""Pods for which the scheduler found no node: each is one finding, with what to do."""

import pytest

from cli.doctor.scene import asking, diagnosed, workload
from cli.placed import (
    ABOVE,
    DRIVER,
    INJECT,
    LISTS,
    PLACES,
    annotated,
    named,
    newer,
    numbered,
    owned,
    pending,
    refused,
    says,
    shut,
    stored,
)
from cli.world import namespace, policy, profile
from taintwarden_cli.rehearsal.pending import diagnose

INJECTED = namespace(**INJECT)
WEBHOOK = {"kind": "MutatingWebhookConfiguration", "metadata": {"name": "taintwarden"}, "webhooks": []}
CHECKS = ("pending-pods", "nowhere-to-go")
WEB = owned(refused(pending(extended=[ABOVE])))
NEEDS = owned(
    refused(pending(annotations=annotated({"requiredDuringSchedulingIgnoredDuringExecution": newer("3.27.0")})))
)
GOOD, BAD = named("a", shut("980"), **says("980")), named("a", shut("700"), **says("700"))
LOOSE, TIGHT = (profile("p", {**ABOVE, "value": value}, app="web") for value in ("950", "990"))


def found(*world):
    """The findings about pending pods, by their checks."""
    return [(one.check, one) for one in diagnosed(*world, INJECTED, WEBHOOK).findings if one.check in CHECKS]


def only(*world):
    [(check, finding)] = found(*world)
    assert finding.pods == 1
    return check, finding.remedy


AGAIN = "kubectl delete pod web -n shop: its ReplicaSet creates it again"


@pytest.mark.parametrize(
    ("world", "remedy"),
    [
        ((WEB, GOOD, PLACES), "see that the webhook runs"),
        ((stored(WEB, PLACES), BAD, PLACES), "add a node, correct a value"),
        ((stored(WEB, PLACES), named("a", shut("980")), policy()), AGAIN),
        (
            (stored(owned(refused(pending())), PLACES, TIGHT), GOOD, PLACES, LOOSE),
            AGAIN,
        ),
        ((stored(NEEDS), named("a", **{DRIVER: "v4.0.0"}), policy()), f"list {DRIVER} under"),
        ((stored(NEEDS), numbered(**{DRIVER: "v4.0.0"}), LISTS), AGAIN),
        (
            (stored(NEEDS, LISTS), named("a", **{DRIVER: "v4.0.0"}), policy()),
            f"list {DRIVER} under versionLabels of a policy",
        ),
    ],
)
def test_each_state_is_one_finding_with_a_remedy(world, remedy):
    given, told = only(*world)
    assert (given, told.startswith(remedy)) == ("pending-pods", True)


def test_a_pod_of_a_daemon_set_that_its_node_does_not_suit():
    field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [field]}}
    web = pending(extended=[ABOVE], spec={"nodeName": "", "affinity": {"nodeAffinity": terms}})
    check, remedy = only(stored(owned(refused(web), "DaemonSet", "agent"), PLACES), BAD, PLACES)
    assert check == "pending-pods"
    assert "kubectl rollout restart daemonset/agent" in remedy


def test_a_label_that_is_late_is_a_finding_about_the_node():
    late = named("a", shut("980"), **says("700"))
    assert found(stored(WEB, PLACES), late, PLACES) == []
    assert len(asking("placement-labels")(late, PLACES)) == 1


def test_a_pod_that_a_node_may_get_is_left_to_the_scheduler():
    assert found(stored(WEB, PLACES), GOOD, PLACES) == []


def test_a_pod_that_the_scheduler_has_not_tried_yet_is_not_looked_at():
    assert found(owned(pending(extended=[ABOVE])), GOOD, PLACES) == []


def test_pods_of_one_owner_are_one_finding():
    made = (pending(extended=[ABOVE], metadata={"name": f"web-{one}", "uid": f"u{one}"}) for one in "ab")
    pods = [owned(refused(pod)) for pod in made]
    owners = owned(pods[0], "Deployment")["metadata"]["ownerReferences"]
    owner = workload("ReplicaSet", "web-1", metadata={"ownerReferences": owners})
    [(check, finding)] = found(*pods, GOOD, PLACES, owner)
    assert (check, str(finding.subject), finding.pods) == ("pending-pods", "Deployment shop/web-1", 2)


def test_what_a_template_shows_is_not_found_twice():
    web = owned(refused(pending(extended=[ABOVE])), "Deployment", "web")
    template = {"metadata": {"annotations": web["metadata"]["annotations"]}}
    acts = policy(taints=[{"key": "sla", "effects": ["NoSchedule"], "placement": True}])
    [(check, finding)] = found(stored(web, acts), BAD, acts, workload(template=template))
    assert (check, str(finding.subject)) == ("nowhere-to-go", "Deployment shop/web")


@pytest.mark.parametrize("nodes", [1, 300])
def test_nodes_that_are_alike_are_evaluated_once(monkeypatch, nodes):
    seen = []

    def counting(pod, candidate, distinct, labels, number):
        seen.append((len(distinct), number))
        return diagnose(pod, candidate, distinct, labels, number)

    monkeypatch.setattr("taintwarden_cli.doctor.context.diagnose", counting)
    others = [named(f"n{number}", shut("700"), host=f"n{number}", **says("700")) for number in range(nodes)]
    [(_, finding)] = found(stored(WEB, PLACES), *others, PLACES)
    none = "the only node may not" if nodes == 1 else f"none of the {nodes} nodes may"
    assert finding.message == f"{none} get it"
    assert set(seen) == {(1, nodes)}
