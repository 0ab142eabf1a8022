"""The OpenAPI description of a server, made from its own calls: paths and words from the routes,
bodies from the types.

`make docs` writes it into `docs/openapi-*.json`; a test fails for a call that is not described.
"""

from dataclasses import dataclass, field
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.routing import Route

from faircount.server.common.http import BYTES
from faircount.server.common.problems import MEDIA_TYPE

JSON = "application/json"
HEX_SURVEY = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
PATH_PARAMETERS: dict[str, dict[str, Any]] = {
    "survey": HEX_SURVEY,
    "part": {"type": "integer", "minimum": 0, "maximum": 999_999},
    "population": {"type": "string", "minLength": 1, "maxLength": 200},
}
SECURITY: dict[str, dict[str, Any]] = {
    "owner": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token of an owner at this server.",
    },
    "operator": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token of this server's operator.",
    },
    "signed": {
        "type": "apiKey",
        "in": "header",
        "name": "faircount-signature",
        "description": "The coordinator's Ed25519 signature of the request, "
        "with the headers faircount-time and faircount-nonce.",
    },
}
PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "reason": {
            "type": "integer",
            "description": "Number of the protocol's reason, where a message was refused.",
        },
    },
}
OWNER, OPERATOR, SIGNED, ANYBODY = "owner", "operator", "signed", ""


@dataclass(frozen=True)
class Call:
    """What routes do not say of a call: who may make it, its body, and its answers by status.

    An answer is a type of the server, or a media type, or several, separated by commas.
    """

    by: str = OWNER
    body: type[msgspec.Struct] | str | None = None
    answers: dict[int, str | type[msgspec.Struct]] = field(default_factory=lambda: {200: JSON})
    query: tuple[str, ...] = ()


def description(
    app: Starlette, title: str, version: str, calls: dict[tuple[str, str], Call]
) -> dict[str, Any]:
    """An application in OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for route in app.routes:
        if isinstance(route, Route) and route.path.startswith("/v1/"):
            for method in sorted((route.methods or set()) - {"HEAD"}):
                operation = _operation(route, method, calls[method, route.path])
                paths.setdefault(route.path, {})[method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version},
        "paths": dict(sorted(paths.items())),
        "components": {"securitySchemes": SECURITY, "schemas": _answer_schemas(calls)},
    }


def _answer_schemas(calls: dict[tuple[str, str], Call]) -> dict[str, Any]:
    schemas: dict[str, Any] = {"Problem": PROBLEM}
    for call in calls.values():
        for kind in call.answers.values():
            if not isinstance(kind, str):
                schemas[kind.__name__] = _schema(kind)
    return schemas


def _operation(route: Route, method: str, call: Call) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": f"{method.lower()}_{route.endpoint.__name__}",
        "summary": (route.endpoint.__doc__ or "").strip(),
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": PATH_PARAMETERS[name]}
            for name in PATH_PARAMETERS
            if f"{{{name}}}" in route.path
        ]
        + [{"name": name, "in": "query", "schema": {"type": "string"}} for name in call.query],
        "security": [{call.by: []}] if call.by else [],
        "responses": {str(status): _answer(kind) for status, kind in call.answers.items()}
        | {"default": {"description": "A problem (RFC 9457).", "content": _content(MEDIA_TYPE)}},
    }
    if call.body is not None:
        made["requestBody"] = {"required": True, "content": _body(call.body)}
    return made


def _answer(kind: str | type[msgspec.Struct]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if not isinstance(kind, str):
        content = {JSON: _reference(kind.__name__)}
    elif kind:
        content = {media_type: {"schema": {}} for media_type in kind.split(", ")}
    return {"description": "Done.", "content": content}


def _content(kind: str) -> dict[str, Any]:
    return {kind: _reference("Problem")}


def _reference(name: str) -> dict[str, Any]:
    return {"schema": {"$ref": f"#/components/schemas/{name}"}}


def _body(body: type[msgspec.Struct] | str) -> dict[str, Any]:
    if isinstance(body, str):
        return {body: {"schema": {"type": "string", "format": "binary"} if body == BYTES else {}}}
    return {JSON: {"schema": _schema(body)}}


def _schema(struct: type[msgspec.Struct]) -> dict[str, Any]:
    named = msgspec.json.schema(struct)["$defs"][struct.__name__]
    return {key: value for key, value in named.items() if key != "title"}
