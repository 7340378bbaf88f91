"""The pages on which requests to the API can be tried, in a browser."""

from robust_queue.api.app import api
from tests.browser import site

DOCS = "/queue/v1/docs"


def test_they_show_every_operation_and_fetch_nothing_from_elsewhere(windows):
    window = windows(1440, True)
    assert window.open(DOCS) == 200
    page = window.page
    page.wait_for_selector(".opblock")
    paths = site.apart(api.get_openapi_schema)["paths"]
    assert page.locator(".opblock").count() == sum(map(len, paths.values()))
    assert not [*window.troubles]
