"""Structs and checks of the ``spec`` of a TaintPublisher. The CRD in ``crds/`` contains the same rules."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Any

from msgspec import UNSET, Meta

from taintwarden.api.decode import decode
from taintwarden.api.types import PUBLISHER_KIND, LabelSelectorSpec
from taintwarden.engine.model import Effect
from taintwarden.fields import names
from taintwarden.fields.field_errors import FieldError
from taintwarden.fields.spec import Spec, checked, no_duplicates

KIND = PUBLISHER_KIND
PLURAL = "taintpublishers"
SECRET = "taintwarden-publisher"  # noqa: S105 - the name of one
"""Name of the Secret that the shipped Role allows the publisher to read."""
LARGEST_VALUE = 2**53
"""Maximum value. Integers up to this one are exact in Prometheus."""
RESERVED = re.compile(r"([^/]+[.])?(kubernetes|k8s|taintwarden)[.]io/.*")
"""Keys of Kubernetes, of its projects, and of Taintwarden."""
DOMAIN = "published.taintwarden.io"
MAX_KEY_PREFIX_LENGTH = names.MAX_PREFIX_LENGTH - len(f".{DOMAIN}")
URL = r"https?://[^\s/?#@]+(/[^\s?#]*)?"
"""An http or https URL without user and without query."""


class PublisherMode(StrEnum):
    """Mode of a publisher. In DryRun it writes no taints."""

    DRY_RUN = "DryRun"
    PUBLISH = "Publish"


class OnStale(StrEnum):
    """Treatment of a taint whose measured value is no longer known."""

    HOLD = "Hold"
    REMOVE = "Remove"


def annotation(key: str) -> str:
    """Return the annotation for a key: ``published.taintwarden.io/sla`` for ``sla``."""
    prefix, _, name = key.rpartition("/")
    return f"{prefix}.{DOMAIN}/{name}" if prefix else f"{DOMAIN}/{name}"


def check_own_key(key: str) -> Iterator[FieldError]:
    """Check that a key may be published: valid, not too long, and not of Kubernetes or Taintwarden."""
    yield from names.check_key(key)
    if RESERVED.fullmatch(key):
        yield FieldError(
            "", key, "must not be a key of Kubernetes or Taintwarden", "choose a key of your own, such as sla"
        )
    if len(key.rpartition("/")[0]) > MAX_KEY_PREFIX_LENGTH:
        yield FieldError("", key, f"the prefix of the key must be no more than {MAX_KEY_PREFIX_LENGTH} characters")


def check_url(url: str) -> Iterator[FieldError]:
    """Check the URL of a server, to which the path of the API is added."""
    if not re.fullmatch(URL, url):
        remedy = "write for example http://prometheus.monitoring:9090"
        yield FieldError("", url, "must be an http or https URL without user and query", remedy)


def check_steps(steps: tuple[int, ...]) -> Iterator[FieldError]:
    """Check that steps increase from 0, so that each value has a step."""
    if steps and steps[0] != 0:
        yield FieldError("[0]", steps[0], "must be 0 in the first step", "values below the second step become 0")
    for index, (before, after) in enumerate(pairwise(steps), 1):
        if after <= before:
            yield FieldError(f"[{index}]", after, f"must be greater than the step before it ({before})")


class AuthSpec(Spec, frozen=True):
    """``spec.auth``: the credentials for Prometheus."""

    secret_name: Annotated[str, Meta(min_length=1, max_length=253)] = SECRET


class PublisherSpec(Spec, frozen=True):
    """``spec`` of a TaintPublisher."""

    key: Annotated[str, checked(check_own_key, max_length=names.MAX_KEY_LENGTH)]
    url: Annotated[str, checked(check_url, max_length=2048)]
    query: Annotated[str, Meta(min_length=1, max_length=4096)]
    mode: PublisherMode = PublisherMode.DRY_RUN
    effects: Annotated[tuple[Effect, ...], checked(no_duplicates, min_length=1, max_length=3)] = (Effect.NO_EXECUTE,)
    node_label: Annotated[str, Meta(min_length=1, max_length=128)] = "node"
    auth: AuthSpec | None = None
    interval_seconds: Annotated[int, Meta(ge=1, le=3600)] = 30
    steps: Annotated[tuple[Annotated[int, Meta(ge=0, le=LARGEST_VALUE)], ...], checked(check_steps, max_length=64)] = ()
    round: Annotated[int, Meta(ge=1, le=LARGEST_VALUE)] | None = None
    hysteresis: Annotated[float, Meta(ge=0, le=LARGEST_VALUE)] = 0.0
    min_dwell_seconds: Annotated[int, Meta(ge=0, le=86400)] = 60
    on_stale: OnStale = OnStale.HOLD
    stale_after_seconds: Annotated[int, Meta(ge=1, le=604800)] = 300
    max_changed_nodes: Annotated[int, Meta(ge=1, le=1_000_000)] | Annotated[str, checked(names.check_percentage)] = (
        "10%"
    )
    node_selector: LabelSelectorSpec = LabelSelectorSpec()


def check_spec(spec: PublisherSpec) -> Iterator[FieldError]:
    """Check the rules about several fields."""
    if bool(spec.steps) == (spec.round is not None):
        yield FieldError("steps", UNSET, "must specify exactly one of steps and round")


class Publisher(Spec, frozen=True, forbid_unknown_fields=False):
    """The part of a TaintPublisher that users write."""

    spec: Annotated[PublisherSpec, checked(check_spec)]


def read_spec(body: Mapping[str, Any]) -> tuple[PublisherSpec | None, str]:
    """Return the ``spec`` of an object and ""; or None, and its faults as one sentence."""
    read, faults = decode(body, Publisher)
    return (None, "; ".join(map(str, faults))) if read is None else (read.spec, "")
