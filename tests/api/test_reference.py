"""The reference of the API: made from its document, and complete where it is not."""

import ast
import re
from pathlib import Path

from docs.http_api import EVERYWHERE, FILTER, MARK, PAGE, PROBLEM, ROOT, rendered
from robust_queue.api.app import api

HERE = Path(__file__).resolve().parents[2]
TEXT = (HERE / f"docs/{PAGE}.md").read_text()
SOURCES = sorted((HERE / "robust_queue/api").glob("*.py"))
DOCUMENT = api.get_openapi_schema(path_prefix=ROOT)
SCHEMAS = DOCUMENT["components"]["schemas"]
REFERENCE = rendered(DOCUMENT)
# What makes a problem, with its status and its code unless it is told another one.
MAKERS = {
    "unauthenticated": (401, "unauthenticated"),
    "forbidden": (403, "forbidden"),
    "not_found": (404, "not_found"),
    "conflict": (409, "conflict"),
    "invalid": (422, "invalid"),
}


def operations():
    for path, methods in DOCUMENT["paths"].items():
        for method, told in methods.items():
            yield f"{method.upper()} {path}", told


def section_of(heading):
    """What stands under a heading."""
    _, _, below = REFERENCE.partition(f"### {heading}\n")
    assert below, heading
    return re.split(r"^##", below, maxsplit=1, flags=re.MULTILINE)[0]


def test_the_page_has_a_place_for_it():
    assert TEXT.count(MARK) == 1


def test_every_operation_is_told_with_all_that_it_takes():
    for address, told in operations():
        section = section_of(f"`{address}`")
        assert told["description"] in section
        assert "x-scope" not in told or f"the scope `{told['x-scope']}" in section
        for permission in told.get("x-permissions", ()):
            assert f"`{permission}`" in section
        for other in told.get("x-others", ()):
            assert f"the scope `{other['scope']}`" in section
            assert all(f"`{each}`" in section for each in other["permissions"])
        for parameter in told["parameters"]:
            name, is_filtered = parameter["name"], f"[{FILTER}]" in section
            is_told = is_filtered and name in SCHEMAS[FILTER]["properties"]
            assert is_told or name == EVERYWHERE or f"| `{name}` |" in section, address


def test_every_operation_is_told_with_its_body_and_its_answers():
    for address, told in operations():
        section = section_of(f"`{address}`")
        assert ("**Body**" in section) is ("requestBody" in told)
        for status, answer in told["responses"].items():
            if {*answer.get("content", ())} != {PROBLEM}:
                assert f"`{status}`" in section, address


def test_every_schema_is_told_with_all_of_its_fields():
    for name, schema in SCHEMAS.items():
        section = section_of(name)
        for field in schema.get("properties", ()):
            assert f"| `{field}` |" in section


def test_links_lead_to_what_is_there():
    targets = set(re.findall(r"^\((.+)\)=$", REFERENCE + TEXT, re.MULTILINE))
    links = set(re.findall(r"\(#(http-api[\w-]*)\)", REFERENCE + TEXT))
    assert links
    assert links <= targets


def test_every_code_of_a_problem_is_told_and_no_other():
    told = re.findall(r"^\| (\d{3}) \| `(\w+)` \|", TEXT, re.MULTILINE)
    assert {(int(status), code) for status, code in told} == {*made()}


def test_no_operation_is_refused_in_another_way():
    told = {int(status) for status, _ in re.findall(r"\| (\d{3}) \| `(\w+)`", TEXT)}
    for _, operation in operations():
        for status, answer in operation["responses"].items():
            assert PROBLEM not in answer.get("content", ()) or int(status) in told


def made():
    """Status and code of every problem that is made anywhere in the API."""
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                # There the makers are themselves, for whatever they are told.
                is_known = source.name != "problems.py"
                yield from _made_by(node, is_known=is_known)


def _made_by(call, *, is_known):
    told = [it.value if isinstance(it, ast.Constant) else None for it in call.args]
    if call.func.id in MAKERS:
        status, usual = MAKERS[call.func.id]
        told = [status, *(told[1:2] or [usual])]
    elif call.func.id != "Problem":
        return
    assert None not in told[:2] or not is_known, ast.unparse(call)
    if None not in told[:2]:
        yield tuple(told[:2])


def test_what_is_said_of_security_names_places_that_are_there():
    told = (HERE / "docs/topics/api-security.md").read_text()
    known = "\n".join(each.read_text() for each in (HERE / "tests").rglob("test_*.py"))
    names = set(re.findall(r"`([tT]est_?\w+)`", told))
    assert names
    assert {it for it in names if not re.search(rf"\b{it}\b", known)} == set()
    files = set(re.findall(r"`((?:\w+/)+\w+\.py)`", told))
    assert files
    for each in files:
        homes = (HERE / "robust_queue", HERE / "tests")
        assert any((home / each).exists() for home in homes), each
