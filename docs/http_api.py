"""The reference of the HTTP API, made from its OpenAPI document while Sphinx reads.

The page has a mark; here is what it stands for. So what is said of an operation is said
once, in its code, and the page cannot be of another version.
"""

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import django
from django.utils.module_loading import import_string

from robust_queue.scopes import NAMED

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PAGE = "reference/http-api"
MARK = "<!-- The operations come here when the documentation is built. -->"
ROOT = "/v1/"
# What operations have in common that list or count jobs, told once.
FILTER = "JobFilter"
# Every operation takes it: the page says so at its head.
EVERYWHERE = "using"
PROBLEM = "application/problem+json"

Facts = Mapping[str, Any]


def setup(app: "Sphinx") -> Facts:
    """Have Sphinx ask for the page here, and each time anew: it has other sources."""
    app.connect("source-read", _fill)
    app.connect("env-get-outdated", lambda *_: [PAGE])
    return {"parallel_read_safe": True}


def document() -> Facts:
    """The OpenAPI document, at addresses that begin with the version."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")
    django.setup()
    api = import_string("robust_queue.api.app.api")
    told: Facts = api.get_openapi_schema(path_prefix=ROOT)
    return told


def rendered(told: Facts) -> str:
    """All operations by their subjects, and all schemas, in MyST."""
    schemas = told["components"]["schemas"]
    sections = [_section(tag, operations, schemas) for tag, operations in _by_tag(told)]
    described = [_schema(name, schemas) for name in sorted(schemas)]
    return "\n\n".join([*sections, "(http-api-schemas)=\n## Schemas", *described])


def _fill(app: "Sphinx", page: str, source: list[str]) -> None:
    if page == PAGE:
        source[0] = source[0].replace(MARK, rendered(document()))


# ── Operations ─────────────────────────────────────────────────────────────────


def _by_tag(told: Facts) -> Iterable[tuple[str, list[tuple[str, Facts]]]]:
    found = defaultdict(list)
    for path, methods in told["paths"].items():
        for method, operation in methods.items():
            address = f"{method.upper()} {path}"
            found[operation["tags"][0]].append((address, operation))
    return found.items()


def _section(tag: str, operations: list[tuple[str, Facts]], schemas: Facts) -> str:
    parts = [_operation(*each, schemas) for each in operations]
    return "\n\n".join([f"## {tag}", *parts])


def _operation(address: str, told: Facts, schemas: Facts) -> str:
    facts = [
        f"- **Takes** {_takes(told)}",
        *_parameters_in_words(told, schemas),
        *_body(told, schemas),
        f"- **Answers** {_answers(told, schemas)}",
    ]
    parts = [
        f"(http-api-{_slug(told['operationId'])})=\n### `{address}`",
        f"{told['description']} (`{told['operationId']}`)",
        "\n".join(facts),
        *_parameters(told, schemas),
    ]
    return "\n\n".join(parts)


def _takes(told: Facts) -> str:
    scope = told.get("x-scope")
    if scope is None:
        return "the secret of that worker."
    written = f"`{scope}:…`" if scope in NAMED else f"`{scope}`"
    takes = f"the scope {written}; in a session, {_permissions(told)}"
    return ". Or ".join([takes, *_others(told)]) + "."


def _others(told: Facts) -> Iterator[str]:
    """What will do as well, by scope."""
    others = told.get("x-others", ())
    for scope in dict.fromkeys(each["scope"] for each in others):
        asked = [each["permissions"] for each in others if each["scope"] == scope]
        names = [" and ".join(f"`{it}`" for it in each) for each in asked]
        yield f"the scope `{scope}`; in a session, any of {', '.join(names)}"


def _permissions(told: Facts) -> str:
    names = [f"`{each}`" for each in told.get("x-permissions", ())]
    if names:
        return " and ".join(names)
    is_for_programs = told["x-scope"] == "work"
    return "nobody may" if is_for_programs else "what it is about takes"


def _body(told: Facts, schemas: Facts) -> Iterator[str]:
    if body := told.get("requestBody"):
        (content,) = body["content"].values()
        left_out = "" if body.get("required") else ", which may be left out"
        yield f"- **Body** {kind(content['schema'], schemas)}{left_out}."


def _answers(told: Facts, schemas: Facts) -> str:
    return ", ".join(
        f"`{status}`{_content(answer, schemas)}"
        for status, answer in told["responses"].items()
        if {*answer.get("content", ())} != {PROBLEM}
    )


def _content(answer: Facts, schemas: Facts) -> str:
    return "".join(
        f" {kind(content['schema'], schemas)}{_media(media)}"
        for media, content in answer.get("content", {}).items()
        if media != PROBLEM
    )


def _media(media: str) -> str:
    return "" if media == "application/json" else f" as `{media}`, one in a line"


# ── Parameters ─────────────────────────────────────────────────────────────────


def _parameters_in_words(told: Facts, schemas: Facts) -> Iterator[str]:
    if _is_filtered(told, schemas):
        yield f"- **Filter** {_link(FILTER, schemas)}, as parameters."


def _parameters(told: Facts, schemas: Facts) -> Iterator[str]:
    apart = schemas[FILTER]["properties"] if _is_filtered(told, schemas) else ()
    own = [
        each
        for each in told["parameters"]
        if each["name"] != EVERYWHERE and each["name"] not in apart
    ]
    if own:
        head = ("parameter", "in", "type", "default", "meaning")
        yield _table(head, [_parameter(each, schemas) for each in own])


def _parameter(told: Facts, schemas: Facts) -> tuple[str, ...]:
    schema = _without_null(told["schema"])
    default = _default(schema, is_required=told["required"])
    meaning = told.get("description", "")
    return (f"`{told['name']}`", told["in"], kind(schema, schemas), default, meaning)


def _without_null(schema: Facts) -> Facts:
    # What an address does not say is left out of it.
    choices = [it for it in schema.get("anyOf", ()) if it.get("type") != "null"]
    return choices[0] if len(choices) == 1 else schema


def _is_filtered(told: Facts, schemas: Facts) -> bool:
    names = {each["name"] for each in told["parameters"]}
    return names.issuperset(schemas[FILTER]["properties"])


# ── Schemas ────────────────────────────────────────────────────────────────────


def _schema(name: str, schemas: Facts) -> str:
    told = schemas[name]
    head = f"({_target(name)})=\n### {name}"
    parts = [head, told.get("description", "")]
    if properties := told.get("properties"):
        parts.append(_fields(told, properties, schemas))
    return "\n\n".join(filter(None, parts))


def _fields(told: Facts, properties: Facts, schemas: Facts) -> str:
    # Only what is sent has defaults that anybody needs to know.
    is_sent = told.get("additionalProperties") is False
    rows = []
    for name, field in properties.items():
        default = _default(field, is_required=name in told.get("required", ()))
        cells = (f"`{name}`", kind(field, schemas), field.get("description", ""))
        rows.append((*cells[:2], default, cells[2]) if is_sent else cells)
    head = ("field", "type", *(["default"] if is_sent else []), "meaning")
    return _table(head, rows)


def _default(schema: Facts, *, is_required: bool) -> str:
    if is_required:
        return "required"
    default = schema.get("default")
    return "" if default is None else f"`{json.dumps(default)}`"


# ── Types ──────────────────────────────────────────────────────────────────────


def kind(schema: Facts, schemas: Facts) -> str:
    """What a value is, in words, with links to schemas."""
    if "$ref" in schema:
        return _link(schema["$ref"].rpartition("/")[2], schemas)
    if choices := schema.get("anyOf") or schema.get("allOf"):
        return " or ".join(kind(each, schemas) for each in choices)
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"] if each)
    if schema.get("type") == "array":
        return f"array of {kind(schema['items'], schemas)}{_limits(schema)}"
    return f"{_plain(schema)}{_limits(schema)}"


def _plain(schema: Facts) -> str:
    named = {"uuid": "UUID", "date-time": "moment"}
    name = schema.get("type", "any JSON")
    word = str(named.get(schema.get("format", ""), name))
    values = schema.get("additionalProperties")
    if isinstance(values, Mapping) and "type" in values:
        return f"{word} of {values['type']}"
    return "`null`" if word == "null" else word


def _limits(schema: Facts) -> str:
    words = [
        _range(schema.get("minimum"), schema.get("maximum"), ""),
        _range(schema.get("minLength"), schema.get("maxLength"), " characters"),
        _range(schema.get("minItems"), schema.get("maxItems"), " of them"),
        f"like `{schema['pattern']}`" if "pattern" in schema else "",
    ]
    told = ", ".join(filter(None, words))
    return f" ({told})" if told else ""


def _range(least: float | None, most: float | None, what: str) -> str:
    if least is None and most is None:
        return ""
    if least is None:
        return f"at most {most:,}{what}"
    return f"{least:,} to {most:,}{what}" if most else f"at least {least:,}{what}"


# ── Words ──────────────────────────────────────────────────────────────────────


def _link(name: str, schemas: Facts) -> str:
    return f"[{name}](#{_target(name)})" if name in schemas else f"`{name}`"


def _target(name: str) -> str:
    return f"http-api-schema-{_slug(re.sub(r'(?<!^)(?=[A-Z])', '-', name))}"


def _slug(name: str) -> str:
    return name.lower().replace("_", "-")


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = [*head]
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")
