"""Every page of the admin: whole, in its frame, open to everybody, and harmless."""

import pytest

from tests.browser import site
from tests.browser.visits import SCHEMES

# Of each page: lists are built alike, whatever they are asked for.
AUDITED = 1


@pytest.mark.parametrize("name", site.page_names())
def test_the_page_is_well(name, atlas, visitor, has_scripts):
    if name in atlas.no_pages:
        return
    addresses = atlas.of(name)
    assert addresses, f"no row has a page {name}: seed one"
    problems = [
        f"{address}\n    {problem}"
        for n, address in enumerate(addresses)
        for problem in _problems(visitor, address, has_scripts and n < AUDITED)
    ]
    assert not problems, "\n".join(problems)


def _problems(visitor, address, is_audited):
    status = visitor.open(address)
    if status != 200:
        yield f"status {status}"
        return
    if sticking_out := visitor.is_too_wide():
        yield f"wider than the window: {sticking_out}"
    if is_audited:
        yield from _barriers(visitor)
    if visitor.is_taken_over():
        yield "a name has become code"
    yield from visitor.troubles


def _barriers(visitor):
    for scheme in SCHEMES:
        for each in visitor.barriers(scheme):
            yield f"{scheme}: {each['rule']} at {'; '.join(each['places'])}"
