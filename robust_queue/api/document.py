"""The OpenAPI document: what the routers say, and what holds for all of them."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

from django.conf import settings
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from .access import IsWorker, Needs, csrf_header
from .deeds import Deed
from .problems import MEDIA_TYPE, ProblemDetails

# By status: when it is told. Each operation may end in these ways.
REFUSALS = {
    400: "The request cannot be read.",
    401: "Nobody knows who asks.",
    403: "Whoever asks may not do that.",
    404: "There is no such thing.",
    405: "The address has other methods.",
    409: "It is not as it would have to be for that.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "The request makes no sense.",
    429: "The token has made too many requests in this minute.",
    500: "A fault of ours.",
    503: "The database cannot be reached, or is busy.",
}

_PROBLEM = ProblemDetails.__name__


def _security() -> dict[str, Any]:
    """How to show who asks, by the names that this project has for it."""
    return {
        "token": {
            "type": "http",
            "scheme": "bearer",
            "description": "A token that was made in the admin, or by "
            "`manage.py robust_queue tokens create`.",
        },
        "session": {
            "type": "apiKey",
            "in": "cookie",
            "name": settings.SESSION_COOKIE_NAME,
            "description": "The session of somebody of the staff, if `api_sessions` is "
            f"on. What changes anything takes the header {csrf_header()} as well.",
        },
        "worker": {
            "type": "http",
            "scheme": "bearer",
            "description": "The secret of a worker, which it got when it registered.",
        },
    }


USING = {
    "in": "query",
    "name": "using",
    "description": "An alias of TASKS, if not the default one is meant.",
    "schema": {"type": "string", "pattern": r"^\w+$", "maxLength": 100},
    "required": False,
}


class QueueAPI(NinjaAPI):
    """An API whose document tells also of problems, scopes and databases."""

    def get_openapi_schema(self, **kwargs: Any) -> OpenAPISchema:
        document = super().get_openapi_schema(**kwargs)
        components = document["components"]
        components["securitySchemes"] = _security()
        described = ProblemDetails.model_json_schema(
            ref_template="#/components/schemas/{model}"
        )
        components["schemas"] |= described.pop("$defs", {})
        components["schemas"][_PROBLEM] = described
        needs = self._needs()
        for methods in document["paths"].values():
            for told in methods.values():
                _complete(told, needs[told["operationId"]])
        return document

    def get_openapi_operation_id(self, operation: Operation) -> str:
        return operation.view_func.__name__

    def tell_gates(self) -> None:
        """Let each gate know which parameters its operation has, and whether a body."""
        for operation in self._operations():
            sources = [_source(it) for it in operation.signature.models]
            models = [it for it in operation.signature.models if _source(it) == "query"]
            names = [it.__ninja_flatten_map__ for it in models]
            lists = [it.__ninja_collection_fields__ for it in models]
            gate: Any = operation.auth_callbacks[0]
            gate.parameters = frozenset(chain.from_iterable(names))
            gate.repeatable = frozenset(chain.from_iterable(lists))
            gate.has_body = "body" in sources

    def _needs(self) -> dict[str, Any]:
        """Who is let in, by the id of an operation."""
        return {
            self.get_openapi_operation_id(operation): operation.auth_callbacks[0]
            for operation in self._operations()
        }

    def _operations(self) -> Iterator[Operation]:
        for router in self._get_bound_routers():
            for view in router.path_operations.values():
                yield from view.operations


def _source(model: Any) -> str:
    """Where in a request it is found: in its address, behind that, or in its body."""
    return str(model.__ninja_param_source__)


def _complete(told: dict[str, Any], lets_in: Any) -> None:
    told.setdefault("parameters", []).append(USING)
    told["security"] = [{each: []} for each in _shown_to(lets_in)]
    if isinstance(lets_in, Needs):
        told |= _asked(lets_in.deed, "x-")
        if lets_in.others:
            # Any of these will do as well.
            told["x-others"] = [_asked(each) for each in lets_in.others]
    for status, when in REFUSALS.items():
        # It may have an answer of its own under the same status.
        answer = told["responses"].setdefault(status, {"description": when})
        answer.setdefault("content", {})[MEDIA_TYPE] = {"schema": _REFUSAL}


def _asked(deed: Deed, prefix: str = "") -> dict[str, Any]:
    """What it takes, as a scope and as permissions, if it is for people at all."""
    asked: dict[str, Any] = {f"{prefix}scope": deed.scope}
    if deed.permissions is not None:
        asked[f"{prefix}permissions"] = list(deed.permissions)
    return asked


_REFUSAL = {"$ref": f"#/components/schemas/{_PROBLEM}"}


def _shown_to(lets_in: Any) -> tuple[str, ...]:
    """What may be shown to be let in; any of these."""
    if isinstance(lets_in, IsWorker):
        return ("worker",)
    is_for_people = lets_in.deed.permissions is not None
    return ("token", "session") if is_for_people else ("token",)
