"""The definition of TaintPublisher agrees with the package in each field."""

from pathlib import Path

import yaml
from msgspec import inspect

from api import test_crd_in_step as step
from taintwarden.fields import names
from taintwarden_publisher.spec import KIND, PLURAL, PublisherSpec, check_own_key, read_spec

ROOT = Path(__file__).parents[2]
CRD = step.definition(PLURAL)
SCHEMA = step.schema_of(CRD)
URL = "spec.url"


def test_spec_agrees_with_the_struct(monkeypatch):
    monkeypatch.setitem(step.PATTERNS, check_own_key, names.KEY)
    in_struct = dict(step.of_type(inspect.type_info(PublisherSpec), "spec"))
    in_crd = dict(step.of_schema(SCHEMA["spec"], "spec"))
    in_crd[URL].pop("pattern", None)
    in_crd["spec.maxChangedNodes"].pop("nullable", None)
    in_struct["spec.maxChangedNodes"].pop("nullable", None)
    assert in_crd == in_struct


def test_names_equal_those_of_the_package():
    assert (CRD["spec"]["names"]["kind"], CRD["spec"]["names"]["plural"]) == (KIND, PLURAL)
    assert CRD["spec"]["scope"] == "Cluster"


def test_every_field_is_described_in_a_sentence():
    for part in ("spec", "status"):
        assert [path for path, text in step.descriptions(SCHEMA[part], part) if not text.endswith(".")] == []


def test_columns_lead_to_fields_that_exist():
    columns = [one["jsonPath"] for one in CRD["spec"]["versions"][0]["additionalPrinterColumns"]]
    known = {f".{path}" for part in ("spec", "status") for path, _ in step.descriptions(SCHEMA[part], part)}
    plain = {path.partition("[")[0] for path in columns if not path.startswith(".metadata")}
    assert plain <= known


def test_the_sample_is_valid_and_in_dry_run():
    publisher, role = yaml.safe_load_all((ROOT / "deploy" / "samples" / "publisher.yaml").read_text())
    spec, fault = read_spec(publisher)
    assert (fault, spec.mode) == ("", "DryRun")
    assert role["rules"][0]["resourceNames"] == [spec.key]
