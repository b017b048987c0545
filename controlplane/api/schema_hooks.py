"""What is added to the OpenAPI schema once all operations are in it: hooks of drf-spectacular (`settings`)."""

from typing import Any, Final

from controlplane.api.examples import examples
from controlplane.api.problems import reason_of
from controlplane.api.schema import ANYTHING, BOTH, JSON, MANIFEST, PLAIN, YAML


def manifests_described(result: dict[str, Any], **_: object) -> dict[str, Any]:
    """Add to the OpenAPI schema that bodies of manifests may be plain JSON or YAML files, too, and that there is none
    of these requests without a body. A hook of drf-spectacular.
    """
    for path in result["paths"].values():
        for operation in path.values():
            body = operation.get("requestBody", {})
            content = body.get("content", {})
            known = content.get(YAML, {}).get("schema")
            if known in (PLAIN, ANYTHING, MANIFEST) or (known is not None and "oneOf" in known):
                body["required"] = True
            if content.get(YAML, {}).get("schema") in (PLAIN, ANYTHING):
                either = {"anyOf": [content[JSON]["schema"], content[YAML]["schema"]]}
                content.update({media: {"schema": either} for media in BOTH})
    return result


def idempotency_described(result: dict[str, Any], **_: object) -> dict[str, Any]:
    """Add the header Idempotency-Key, and the answers that refuse because of it, to every POST in the OpenAPI schema. A
    hook of drf-spectacular.
    """
    key = {
        "name": "Idempotency-Key",
        "in": "header",
        "schema": {"type": "string", "maxLength": 255},
        "description": (
            "Sent again under the same key within a day, the request is answered alike and not done again. A secret is "
            "told once: of what told one, 409 (XDS3032) says that it was done. So does 409 (XDS3033) where the process "
            "that did it died before it answered. A key is its principal's alone."
        ),
    }
    for path in result["paths"].values():
        for verb, operation in path.items():
            if verb == "post":
                operation.setdefault("parameters", []).append(key)
                refusal = operation["responses"]["400"]["content"]
                operation["responses"].setdefault("409", {"description": reason_of(409), "content": refusal})
                operation["responses"].setdefault("422", {"description": reason_of(422), "content": refusal})
    return result


def retry_after_described(result: dict[str, Any], **_: object) -> dict[str, Any]:
    """Add the header Retry-After to every answer in the OpenAPI schema that asks the caller to try again later. A hook
    of drf-spectacular.
    """
    header = {"schema": {"type": "integer", "minimum": 1}, "description": "After how many seconds to send it again."}
    for path in result["paths"].values():
        for operation in path.values():
            for status in ("429", "503"):
                if status in operation["responses"]:
                    operation["responses"][status].setdefault("headers", {})["Retry-After"] = header
    return result


# What interfaces.md does not fix: it may change from one release to the next. Every other operation is stable.
_BETA: Final = frozenset(
    {
        *("access_case_list", "access_case_create", "access_case_delete", "access_history", "access_review"),
        *(f"channel_{act}" for act in ("list", "create", "get", "update", "delete", "test", "pause", "resume")),
        *("delivery_list", "notification_list", "revision_restore", "error_get"),
        *("client_token_list", "client_token_create", "client_token_revoke", "client_said", "client_report", "tail"),
        *("graph", "quarantines", "request_explain", "resource_bulk", "resource_patch", "search", "whoami"),
        *("client_bulk", "client_patch", *(f"view_{act}" for act in ("list", "create", "get", "update", "delete"))),
        *("series_get", "change_convergence"),
        *(f"route_case_{act}" for act in ("list", "create", "get", "update", "delete", "run", "apply", "import")),
    }
)


def stability_described(result: dict[str, Any], **_: object) -> dict[str, Any]:
    """Mark each operation in the OpenAPI schema as `stable` or `beta`. A hook of drf-spectacular."""
    for path in result["paths"].values():
        for operation in path.values():
            operation["x-stability"] = "beta" if operation["operationId"] in _BETA else "stable"
    return result


def examples_described(result: dict[str, Any], **_: object) -> dict[str, Any]:
    """Add an example to each request body in the OpenAPI schema. A hook of drf-spectacular."""
    known = examples()
    for path in result["paths"].values():
        for operation in path.values():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                content["example"] = known[operation["operationId"]]
    return result
