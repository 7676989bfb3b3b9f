"""Settings of the processes. Policies are objects of the cluster, not flags."""

import math
import os
import socket
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from taintwarden.engine.model import Gates

PREFIX = "TAINTWARDEN_"
MAX_IN_FLIGHT = 64
"""Maximum number of eviction calls in progress. More would only wait inside the API server."""


LogFormat = Literal["auto", "json", "console"]
LogLevel = Literal["debug", "info", "warning", "error"]


class SettingsError(Exception):
    """A setting is invalid. The message names the flag, its variable and the fault."""


class CommonSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of every process. Each field is a flag and a ``TAINTWARDEN_*`` variable."""

    kubeconfig: str | None = None
    """Path of a kubeconfig. By default as kubectl: KUBECONFIG, ``~/.kube/config``, the pod's service account."""
    context: str | None = None
    namespace: str = "taintwarden-system"
    """Namespace of the Lease for leader election and of Secrets. ``POD_NAMESPACE`` precedes the default."""
    http_host: str = ""
    """Address to listen on. Empty for all addresses of the machine, IPv4 and IPv6."""
    http_port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8080
    """Port of /livez and /readyz, and of /metrics unless ``metrics_port`` is set."""
    metrics_port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0
    """Port of /metrics over HTTPS, for tokens with the right to get it. 0: ``http_port`` serves it to every client."""
    metrics_certificate: str | None = None
    """Folder of the files tls.crt and tls.key for that port. Without one, each start makes a certificate."""
    numeric_operators: bool = True
    semver_operators: bool = True
    log_format: LogFormat = "auto"
    log_level: LogLevel = "info"

    @property
    def gates(self) -> Gates:
        """The families of operators that are enabled."""
        return Gates(self.numeric_operators, self.semver_operators)


class Settings(CommonSettings, frozen=True, kw_only=True):
    """Settings of ``taintwarden run``."""

    identity: str = ""
    """Identity, unique among replicas. By default the pod's name and UID, or the host's name and random characters."""
    max_evictions_per_second: Annotated[float, msgspec.Meta(ge=0, le=100_000)] = 50.0
    """Maximum rate over all policies. 0 for no limit."""
    events_per_second: Annotated[float, msgspec.Meta(gt=0, le=1_000)] = 20.0
    """Maximum rate of written Events, so that they never slow down evictions."""
    drained_condition: bool = False
    """True to write the condition taintwarden.io/Drained of nodes, which needs the right to patch nodes/status."""
    dry_run: bool = False
    """True to treat policies in mode Enforce as DryRun, so that nothing is evicted."""

    @property
    def overall_rate(self) -> float | None:
        """Maximum rate of evictions; None for no limit."""
        return self.max_evictions_per_second or None

    @property
    def max_in_flight(self) -> int:
        """Maximum number of eviction calls in progress: 8 to 64, four times as many as the rate needs for 0.1 s each.

        If many webhooks hang, each call to one of them occupies a slot for a second.
        """
        if self.overall_rate is None:
            return MAX_IN_FLIGHT
        return min(MAX_IN_FLIGHT, max(8, math.ceil(self.overall_rate / 2.5)))


AnySettings = TypeVar("AnySettings", bound=CommonSettings)


def load_settings(environment: Mapping[str, str], **flags: Any) -> Settings:
    """Load the settings of the operator, with an identity.

    Raises:
        SettingsError: a value is of the wrong type or out of range.

    """
    settings = load(Settings, environment, **flags)
    if settings.identity:
        return settings
    # An empty identity would mean "no holder" in the Lease. A container that is restarted in its pod is the same holder
    # and renews the Lease at once: the kubelet starts no second container while the first one runs.
    part = environment.get("POD_UID") or os.urandom(4).hex()
    identity = f"{environment.get('POD_NAME') or socket.gethostname()}_{part}"
    return msgspec.structs.replace(settings, identity=identity)


def load(kind: type[AnySettings], environment: Mapping[str, str], **flags: Any) -> AnySettings:
    """Load settings: flags that are not None, then ``TAINTWARDEN_*`` variables, then ``POD_NAMESPACE``, then defaults.

    Raises:
        SettingsError: a value is of the wrong type or out of range.

    """
    values: dict[str, Any] = {}
    for name in kind.__struct_fields__:
        if flags.get(name) is not None:
            values[name] = flags[name]
        elif (variable := PREFIX + name.upper()) in environment:
            values[name] = environment[variable]
    if "POD_NAMESPACE" in environment:
        values.setdefault("namespace", environment["POD_NAMESPACE"])
    try:
        settings = msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        reason, _, path = str(error).partition(" - at `$.")
        field = path.rstrip("`")
        if get_origin(kinds := get_type_hints(kind).get(field)) is Literal:
            reason = f"expected one of {', '.join(get_args(kinds))}"
        msg = f"--{field.replace('_', '-')} (or {PREFIX}{field.upper()}) is {values.get(field)!r}: {reason.lower()}"
        raise SettingsError(msg) from error
    for field, value in msgspec.structs.asdict(settings).items():
        if isinstance(value, float) and math.isnan(value):  # NaN passes every range check
            msg = f"--{field.replace('_', '-')} (or {PREFIX}{field.upper()}) is not a number"
            raise SettingsError(msg)
    return settings
