"""Gates of the API server and of the operator that do not fit what is stored."""

from cli.doctor.scene import asking, replicas, workload
from cli.world import pod, toleration
from taintwarden.cli.doctor.doctor_snapshot import OperatorSettings, Trial
from taintwarden.engine.model import Gates

state = asking("gate-state")
skew = asking("gate-skew")
off = asking("gate-operator-off")
STRICT = toleration("Gt", "950")
VERSION = toleration("SemverGt", "1.14.0")
REFUSED = (Trial("Gt", accepted=False), Trial("SemverGt", accepted=False))
ACCEPTED = (Trial("Gt", accepted=True), Trial("SemverGt", accepted=False))


def test_what_the_server_takes_is_a_note():
    told = [(one.severity, one.message) for one in state(trials=ACCEPTED)]
    assert ("info", "the API server accepts Gt, Lt in spec.tolerations") in told
    assert ("info", "the API server refuses SemverGt, SemverLt, SemverEq in spec.tolerations") in told


def test_what_is_stored_and_refused_by_now():
    (found,) = skew(replicas(2, STRICT), trials=REFUSED)
    assert (found.pods, found.template, found.severity) == (2, True, "error")
    assert "lost pods are not replaced" in found.message


def test_each_family_has_a_gate_of_its_own():
    assert [
        one.name for one in skew(pod(STRICT), workload(template={"spec": {"tolerations": [VERSION]}}), trials=ACCEPTED)
    ] == ["web"]


def test_what_the_server_takes_is_left_in_peace():
    assert skew(replicas(2, STRICT), trials=ACCEPTED) == []
    assert skew(replicas(2, toleration("Exists"), extended=[STRICT]), trials=REFUSED) == []


def test_operator_that_is_switched_off():
    operator = OperatorSettings("taintwarden", Gates(numeric_operators=False))
    (found,) = off(replicas(2, toleration("Exists"), extended=[STRICT]), operator=operator)
    assert (found.pods, "never holds" in found.message) == (2, True)
    assert off(replicas(2, VERSION), operator=operator) == []


def test_operator_with_its_defaults_is_left_in_peace():
    assert off(replicas(2, STRICT, VERSION), operator=OperatorSettings("taintwarden")) == []
