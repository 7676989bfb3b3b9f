"""Examples in the pages are valid: YAML, JSON, policies, annotations, Python."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from docs.pages import BLOCKS, BY_NAME, ROOT, data_blocks, objects
from taintwarden.api.policies import parse_policy
from taintwarden.api.profiles import parse_profile
from taintwarden.api.tolerations import parse_tolerations
from taintwarden.api.types import POLICY_KIND, PROFILE_KIND
from taintwarden.engine.history import decode_histories
from taintwarden.engine.model import PodClass, Taint, Toleration, Tolerations
from taintwarden.engine.operators import Match, match
from taintwarden.engine.profile_selection import effective, matching
from taintwarden.engine.versions import parse_version

ANNOTATION = "taintwarden.io/tolerations"
LANGUAGES = {"sh", "console", "yaml", "json", "text", "python", "mermaid"}
POLICIES = [(where, document) for where, document in objects() if document["kind"] == POLICY_KIND]
PROFILES = [(where, document) for where, document in objects() if document["kind"] == PROFILE_KIND]


def annotations(value: Any) -> Iterator[str]:
    """Every annotation with tolerations, however deep."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == ANNOTATION:
                yield inner
            else:
                yield from annotations(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from annotations(inner)


ANNOTATIONS = [(where, text) for where, document in data_blocks() for text in annotations(document)]


def test_every_block_says_what_it_is():
    assert [block.where for block in BLOCKS if block.language not in LANGUAGES] == []


def test_yaml_and_json_parse():
    assert all(document is not None for _, document in data_blocks())


@pytest.mark.parametrize(("where", "document"), POLICIES, ids=lambda value: value if isinstance(value, str) else "")
def test_a_policy_is_valid(where, document):
    policy = parse_policy(document)
    assert policy.taints or policy.version_labels


@pytest.mark.parametrize(("where", "document"), PROFILES, ids=lambda value: value if isinstance(value, str) else "")
def test_a_profile_is_valid(where, document):
    profile = parse_profile(document)
    assert profile.tolerations or profile.affinity


@pytest.mark.parametrize(("where", "document"), POLICIES, ids=lambda value: value if isinstance(value, str) else "")
def test_a_recipe_exists_once(where, document):
    sample = ROOT / "deploy" / "samples" / f"{document['metadata']['name']}.yaml"
    assert not sample.exists() or yaml.safe_load(sample.read_text("utf-8")) == document, "link to the sample"


def test_profiles_are_shown_where_people_look():
    assert {where.partition(":")[0] for where, _ in PROFILES} >= {"docs/profiles.md"}


def test_the_pods_of_the_page_about_profiles_fare_as_its_table_says():
    shown = next(document for where, document in PROFILES if where.startswith("docs/profiles.md"))
    profile = parse_profile(shown)
    exists, loose = Toleration("sla", "Exists"), Toleration("sla", "Gt", "900")
    taint = Taint("sla", "940")
    fates = []
    for labels, annotated in (({}, ()), ({"tier": "critical"}, ()), ({"tier": "critical"}, (loose,))):
        pod_class = PodClass("shop", labels, Tolerations((exists,), annotated))
        tried = effective(pod_class, matching([profile], pod_class)).relevant_to("sla")
        fates.append(any(match(one, taint) is Match.HOLDS for one in tried))
    told = BY_NAME["docs/profiles.md"].table("Order and narrowing").column("stays?")
    assert [cell.startswith("yes") for cell in told] == fates


def test_policies_are_shown_where_people_look():
    assert {where.partition(":")[0] for where, _ in POLICIES} >= {"README.md", "docs/policies.md"}


@pytest.mark.parametrize(("where", "text"), ANNOTATIONS, ids=lambda value: value if ":" in value[:30] else "")
def test_an_annotation_is_valid(where, text):
    tolerations, errors = parse_tolerations(text)
    assert errors == ()
    assert tolerations


def test_annotations_are_shown_where_people_look():
    assert {where.partition(":")[0] for where, _ in ANNOTATIONS} >= {"README.md", "docs/concepts.md"}


@pytest.mark.parametrize("block", [one for one in BLOCKS if one.language == "python"], ids=lambda block: block.where)
def test_python_compiles(block):
    compile(block.text, block.where, "exec")


def test_the_history_shown_is_one():
    (block,) = [one for one in BY_NAME["docs/concepts.md"].blocks if one.language == "json"]
    assert decode_histories(block.text)["sla:NoExecute"].values[0] == "940"


def test_the_refusal_shown_is_that_of_the_parser():
    _, (error,) = parse_tolerations('[{"key": "sla", "operator": "Gt", "value": "0950"}]')
    assert str(error) in BY_NAME["docs/concepts.md"].text


def test_the_versions_that_surprise_are_as_the_table_says():
    def holds(taint: str, operator: str, wanted: str) -> bool:
        return match(Toleration("k", operator, wanted), Taint("k", taint)) is Match.HOLDS

    assert parse_version("v1.28") == parse_version("1.28.0")
    assert not [text for text in ("1.28-rc.1", "containerd://2.1.4", "V1.28.0") if parse_version(text)]
    assert parse_version("v1.28.0+k3s1")
    for build, release in (("v1.28.0-k3s1", "1.28.0"), ("v1.27.3-gke.100", "1.27.3")):
        assert not holds(build, "SemverGt", release)
        assert holds(build, "SemverLt", release)
        assert holds(build, "SemverGt", f"{release}-0")
    assert holds("1.28.0", "SemverGt", "1.28.0-0")
    assert holds("v3.100.0", "SemverGt", "v3.28.0")
