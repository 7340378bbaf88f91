"""A browser, a site with something of everything, and windows to look at it."""

import os

import pytest
from django.conf import settings
from django.test import override_settings

from tests.browser import chromium, hostile, seed, site

WIDTHS = (1440, 390)
HEIGHT = 900
# A machine that shares its cores is slow at times.
PATIENCE = 30_000


@pytest.fixture(scope="package")
def database(django_db_setup, django_db_blocker):
    """Open to all threads for as long as the browser looks, and empty afterwards."""
    with django_db_blocker.unblock(), override_settings(**site.STRICT):
        # Without a test that is marked to need one, there is no table yet.
        site.apart(site.migrate)
        yield
        site.apart(site.empty)


@pytest.fixture(scope="package")
def session(database):
    """Who is logged in; the shop is seeded before."""
    site.apart(seed.everything)
    site.apart(hostile.everything)
    return site.apart(site.log_in)


@pytest.fixture(scope="package")
def atlas(session):
    """Where each page is found."""
    return site.apart(site.Atlas, session)


@pytest.fixture(scope="package")
def address(session):
    """Where the site is served."""
    with site.served() as address:
        yield address


@pytest.fixture(scope="package")
def browser(atlas):
    """Chromium, started once."""
    program = chromium.program()
    if program is None:
        _miss("Chromium is missing")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        options = {"executable_path": program, "args": ["--no-sandbox"]}
        browser = playwright.chromium.launch(**options)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def windows(browser, address, session):
    """Opens windows of some width, with scripts or without; each only once."""
    from tests.browser.visits import Visitor

    opened = {}

    def window(width, has_scripts):
        if (width, has_scripts) not in opened:
            context = browser.new_context(
                viewport={"width": width, "height": HEIGHT},
                java_script_enabled=has_scripts,
                locale="en-GB",
                timezone_id="UTC",
            )
            context.set_default_timeout(PATIENCE)
            cookie = {"name": settings.SESSION_COOKIE_NAME, "value": session}
            context.add_cookies([{**cookie, "url": address}])
            opened[width, has_scripts] = Visitor(context.new_page(), address)
        return opened[width, has_scripts]

    return window


@pytest.fixture(params=[True, False], ids=["scripts", "no-scripts"])
def has_scripts(request):
    return request.param


@pytest.fixture(params=WIDTHS)
def width(request):
    return request.param


@pytest.fixture
def visitor(windows, width, has_scripts):
    """A window of each width, with scripts and without."""
    return windows(width, has_scripts)


def _miss(what):
    if os.environ.get("CI") or os.environ.get("RQ_STRICT"):
        pytest.fail(what)
    pytest.skip(what)
