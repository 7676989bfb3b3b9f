"""The shipped roles have exactly the rights for the calls that the code makes."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from controller import pod
from kube.scripted import Call, EndOfScriptError, ScriptedClient, refusal, standing
from kube.stored_webhooks import StoredWebhooks
from taintwarden import app
from taintwarden.controller.clock import system_clock
from taintwarden.controller.scrapers import Scrapers
from taintwarden.engine.commands import SaveHistory
from taintwarden.engine.model import Deployment
from taintwarden.kube.auth.connection import Connection
from taintwarden.kube.auth.kubeconfig import ClusterSource
from taintwarden.kube.calls import node_calls, own_kinds
from taintwarden.kube.calls.evictor import ask_replacement, delete_pod, evict_pod
from taintwarden.kube.calls.lease import LEASE_NAME, Lease, LeaseTimings
from taintwarden.kube.calls.recorder import NORMAL, EventSubject, Message, Recorder
from taintwarden.kube.wire.resources import DEPLOYMENTS, Resource
from taintwarden.settings import Settings
from taintwarden_placement import extender_process, webhook_process
from taintwarden_placement.settings import ExtenderSettings, WebhookSettings
from taintwarden_placement.trust import write_bundles
from taintwarden_placement.webhook_calls import ConfigurationKind, read_configurations, read_secret, write_secret

Right = tuple[str, str, str]
"""A right: group, resource with its subresource, verb."""
BASE = Path(__file__).parents[2] / "deploy" / "base"
EXTENDER = BASE.parent / "components" / "scheduler-extender"
METRICS = BASE.parent / "components" / "protected-metrics"
PATH = re.compile(
    r"/(?:api/v1|apis/(?P<group>[^/]+)/[^/]+)(?:/namespaces/[^/]+(?=/))?"
    r"/(?P<resource>[a-z]+)(?:/(?P<name>[^/]+)(?:/(?P<sub>[a-z]+))?)?"
)
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
SOURCE = ClusterSource("https://127.0.0.1:1", token="t")


def right(call: Call) -> Right:
    found = PATH.fullmatch(call.path)
    assert found is not None, call.path
    resource = found["resource"] + (f"/{found['sub']}" if found["sub"] else "")
    verb = VERBS.get(call.method) or ("get" if found["name"] else "list")
    return found["group"] or "", resource, verb


def used(calls: Iterable[Call]) -> set[Right]:
    return {right(call) for call in calls}


def followed(resources: Iterable[Resource[Any]]) -> set[Right]:
    return {
        (group, resource, verb)
        for source in resources
        for group, resource, _ in [right(Call("GET", source.path, {}))]
        for verb in ("list", "watch")
    }


def shipped(file: str, *roles: str, folder: Path = BASE) -> set[Right]:
    return {
        (group, resource, verb)
        for role in yaml.safe_load_all((folder / file).read_text())
        if "rules" in role and role["metadata"]["name"] in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


async def lease_calls() -> list[Call]:
    held = {"metadata": {"name": LEASE_NAME}, "spec": {"holderIdentity": "me"}}
    client = ScriptedClient(refusal(404), {}, held, {}, held, {})
    more: Any = {"monotonic": lambda: 0.0, "on_change": lambda _: None, "on_error": lambda _: None}
    timings = LeaseTimings(retry=0.0)
    with pytest.raises(EndOfScriptError):
        await Lease(client, namespace="home", name=LEASE_NAME, identity="me", timings=timings, **more).run()
    return client.calls


async def event_calls() -> list[Call]:
    client = ScriptedClient(refusal(409), {}, {})
    subject = EventSubject("Pod", "web-1", "uid", "shop")
    recorder = Recorder(client, "me", 1.0)
    recorder.record(Message(subject, NORMAL, "Evicted", "Evict", "note"))
    await recorder.flush(60)
    return client.calls


async def test_the_operator_has_the_rights_that_it_uses_and_no_other():
    node, named = {"metadata": {}}, {"metadata": {"uid": "u", "resourceVersion": "1"}}
    asked = {"metadata": named["metadata"] | {"annotations": {own_kinds.GUARD_RESET_ANNOTATION: "1"}}}
    listed = {"items": [], "metadata": {"resourceVersion": "1"}}
    client = ScriptedClient(listed, listed, node, {}, {}, {}, {}, named, {"status": {"guard": {"term": 1}}}, asked, {})
    await own_kinds.check_definition(client, own_kinds.POLICIES)
    await own_kinds.check_definition(client, own_kinds.PROFILES)
    await node_calls.read_node(client, "n1")
    await node_calls.save_history(client, SaveHistory("n1", "u", "{}"), standing)
    await evict_pod(client, pod(), None, standing)
    await own_kinds.patch_status(client, own_kinds.POLICIES, "p", {}, fence=standing)
    await own_kinds.patch_status(client, own_kinds.PROFILES, "shop/p", {}, fence=standing)
    await own_kinds.save_record(client, "p", "u", {"term": 1}, standing)
    await own_kinds.clear_guard_reset(client, "p", "u", standing)
    calls = [*client.calls, *await lease_calls(), *await event_calls()]
    operator = app.App(Settings(identity="me"), Connection(SOURCE), system_clock)
    followed_always = [one for one in operator.following.handlers if one is not DEPLOYMENTS]
    assert used(calls) | followed(followed_always) == shipped("rbac.yaml", "taintwarden")


async def test_asking_for_replacements_uses_the_rights_of_its_role_and_no_other():
    client = ScriptedClient({})
    await ask_replacement(client, Deployment("shop", "web", "u", "1", restarted_at="now"), standing)
    assert used(client.calls) | followed([DEPLOYMENTS]) == shipped("rbac.yaml", "taintwarden-replace")


async def test_deleting_uses_the_rights_of_its_role_and_no_other():
    client = ScriptedClient({}, {})
    await delete_pod(client, pod(), None, "because", standing)
    assert used(client.calls) == shipped("rbac.yaml", "taintwarden-delete")


async def test_the_webhook_has_the_rights_that_it_uses_and_no_other():
    api = StoredWebhooks()
    client = ScriptedClient(default=api)
    await read_secret(client, "home", "webhook")
    await write_secret(client, "home", "webhook", {}, str(api.version))
    for kind in ConfigurationKind:
        await read_configurations(client, kind, "home", "webhook")
    process = webhook_process.WebhookApp(WebhookSettings(), Connection(SOURCE), system_clock)
    assert used(client.calls) | followed(process.followed) == shipped("webhook-rbac.yaml", "taintwarden-webhook")


async def test_webhook_trust_has_the_rights_that_it_uses_and_no_other():
    api = StoredWebhooks()
    api.put(authority_crt=b"one", ca_crt=b"one")
    client = ScriptedClient(default=api)
    await write_bundles(client, "home", "webhook", 0.0)
    assert used(client.calls) == shipped("webhook-trust.yaml", "taintwarden-webhook-trust")


async def test_the_scheduler_extender_has_the_rights_that_it_uses_and_no_other():
    api = StoredWebhooks()
    client = ScriptedClient(default=api)
    await read_secret(client, "home", "webhook")
    await write_secret(client, "home", "webhook", {}, str(api.version))
    process = extender_process.ExtenderApp(ExtenderSettings(), Connection(SOURCE), system_clock)
    found = shipped("rbac.yaml", "taintwarden-scheduler-extender", folder=EXTENDER)
    assert used(client.calls) | followed(process.followed) == found
    assert {verb for _, resource, verb in found if resource != "secrets"} == {"list", "watch"}


async def test_checking_access_to_metrics_uses_the_rights_of_its_role_and_no_other():
    known = {"status": {"authenticated": True, "user": {"username": "prometheus"}}}
    client = ScriptedClient(known, {"status": {"allowed": True}})
    await Scrapers(client, lambda: system_clock().monotonic).check_access("Bearer t")
    assert used(client.calls) == shipped("metrics-access.yaml", "taintwarden-metrics-access", folder=METRICS)
