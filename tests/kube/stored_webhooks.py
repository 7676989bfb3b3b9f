"""An API server that stores the Secret and the webhook configurations into which certificates are written."""

import base64
from typing import Any

from kube.scripted import Call, refusal

SECRET = "/api/v1/namespaces/home/secrets/webhook"
GROUP = "/apis/admissionregistration.k8s.io/v1"
VALIDATING, MUTATING = (f"{GROUP}/{kind}webhookconfigurations" for kind in ("validating", "mutating"))
NAME = "taintwarden"
SERVICE = {"namespace": "home", "name": "webhook", "path": "/validate", "port": 443}


class StoredWebhooks:
    """Answers the calls of a keeper. A `secret` of None does not exist; `refused` is raised for every call."""

    def __init__(self) -> None:
        self.secret: dict[str, bytes] | None = {}
        self.version = 1
        self.configurations: dict[str, list[dict[str, Any]] | None] = {
            VALIDATING: [self.webhook("one"), self.webhook("two"), self.webhook("theirs", "another")],
            MUTATING: [self.webhook("three")],
        }
        self.refused: Exception | None = None
        self.configurations_refused: Exception | None = None
        self.managed_fields: dict[str, list[dict[str, Any]]] = {
            path: [{"manager": "helm"}] for path in self.configurations
        }
        self.writes: list[str] = []
        self.before_write: Any = None
        """Called once before the next write, for a client that writes first."""

    @staticmethod
    def webhook(name: str, service: str = "webhook") -> dict[str, Any]:
        return {"name": name, "clientConfig": {"service": {**SERVICE, "name": service}}}

    def __call__(self, call: Call) -> Any:
        if self.refused:
            raise self.refused
        if call.method == "PATCH" and self.before_write:
            happening, self.before_write = self.before_write, None
            happening()
        return self._secret(call) if call.path == SECRET else self._configuration(call)

    def put(self, **content: bytes) -> None:
        """Write keys of the Secret, named with _ for the dot."""
        self.secret = {**(self.secret or {}), **{key.replace("_", "."): value for key, value in content.items()}}
        self.version += 1

    def bundles(self) -> dict[str, bytes | None]:
        """The bundle that each webhook trusts, by the webhook's name."""
        found = (webhook for webhooks in self.configurations.values() for webhook in webhooks or ())
        return {
            webhook["name"]: base64.b64decode(bundle) if (bundle := webhook["clientConfig"].get("caBundle")) else None
            for webhook in found
        }

    def _secret(self, call: Call) -> Any:
        if self.secret is None:
            raise refusal(404, 'secrets "webhook" not found')
        if call.method == "PATCH":
            if call.body["metadata"]["resourceVersion"] != str(self.version):
                raise refusal(409, "the object has been modified")
            self.writes.append("secret")
            self.version += 1
            for key, value in call.body["data"].items():
                if value is None:
                    del self.secret[key]
                else:
                    self.secret[key] = base64.b64decode(value)
        data = {key: base64.b64encode(value).decode() for key, value in self.secret.items()}
        return {"metadata": {"resourceVersion": str(self.version)}, "data": data or None}

    def _configuration(self, call: Call) -> Any:
        if self.configurations_refused:
            raise self.configurations_refused
        path, _, name = call.path.partition(f"/{NAME}") if call.method == "PATCH" else (call.path, "", "")
        assert not name
        webhooks = self.configurations[path]
        if call.method == "PATCH" and "managedFields" in call.body.get("metadata", {}):
            assert call.body["metadata"]["resourceVersion"] == str(self.version)
            self.managed_fields[path] = call.body["metadata"]["managedFields"]
        elif call.method == "PATCH":
            assert call.params == {"fieldManager": "taintwarden-webhooks", "force": "true"}
            self.managed_fields[path] = [{"manager": "helm"}, {"manager": "taintwarden-webhooks"}]
            self.writes.append(call.body["kind"])
            for applied in call.body["webhooks"]:
                (stored,) = (webhook for webhook in webhooks or () if webhook["name"] == applied["name"])
                stored["clientConfig"]["caBundle"] = applied["clientConfig"]["caBundle"]
        others = {"metadata": {"name": "of-others"}, "webhooks": [self.webhook("foreign", "foreign"), {"name": "url"}]}
        others["webhooks"][1]["clientConfig"] = {"url": "https://example.com"}
        metadata = {"name": NAME, "resourceVersion": str(self.version), "managedFields": self.managed_fields[path]}
        return {"items": [others, *([] if webhooks is None else [{"metadata": metadata, "webhooks": webhooks}])]}

    def trust(self, bundle: bytes, *names: str) -> None:
        """Write the bundle as `taintwarden webhook-trust` does, or into the webhooks with these names only."""
        for webhooks in self.configurations.values():
            for webhook in webhooks or ():
                is_ours = webhook["clientConfig"]["service"]["name"] == SERVICE["name"]
                if is_ours and (not names or webhook["name"] in names):
                    webhook["clientConfig"]["caBundle"] = base64.b64encode(bundle).decode()
