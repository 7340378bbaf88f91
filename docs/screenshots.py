"""Pictures of the pages, for the documentation: `make screenshots`.

The shop of the example project is seeded as the tests in the browser seed it, in a
database that is thrown away.
"""

import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "_static" / "screenshots"
HEIGHT = 900
WIDE, NARROW = 1440, 390
QUALITY = 80

PAGES = {
    "overview": "overview",
    "jobs": "job",
    "failures": "failures",
    "queues": "queue",
    "processes": "processtree",
    "recurring": "recurringtask",
    "keys": "semaphore",
    "operations": "operation",
}
# Of these there is also one in the dark, and one as a telephone shows it.
ALSO_DARK = ("overview", "job", "failures")
ALSO_NARROW = ("overview", "jobs", "queues")


def main() -> None:
    """Seed, serve, look, and write what is seen."""
    sys.path.insert(0, str(ROOT))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SHOP_DATABASE"] = str(Path(folder) / "shop.sqlite3")
        os.environ["DJANGO_SETTINGS_MODULE"] = "example_project.settings"
        _take()


def _take() -> None:
    import django

    django.setup()
    from tests.browser import chromium, seed, site

    site.apart(site.migrate)
    site.apart(seed.everything)
    session, addresses = site.apart(site.log_in), site.apart(_addresses)
    program = chromium.program()
    if program is None:
        sys.exit("Chromium is missing; cure: apt-get install chromium.")
    TARGET.mkdir(parents=True, exist_ok=True)
    with site.served() as base:
        _photograph(program, base, session, addresses)


def _photograph(
    program: str, base: str, session: str, addresses: dict[str, str]
) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        options = {"executable_path": program, "args": ["--no-sandbox"]}
        browser = playwright.chromium.launch(**options)
        for name, address in addresses.items():
            for suffix, width, scheme in _ways(name):
                context = browser.new_context(
                    viewport={"width": width, "height": HEIGHT}, color_scheme=scheme
                )
                cookie = {"name": "sessionid", "value": session, "url": base}
                context.add_cookies([cookie])
                page = context.new_page()
                page.goto(base + address)
                path = TARGET / f"{name}{suffix}.jpg"
                page.screenshot(path=path, type="jpeg", quality=QUALITY)
                context.close()
                print(f"{path.name}: {path.stat().st_size // 1024} kB")
        browser.close()


def _ways(name: str) -> list[tuple[str, int, str]]:
    ways = [("", WIDE, "light")]
    if name in ALSO_DARK:
        ways.append(("-dark", WIDE, "dark"))
    if name in ALSO_NARROW:
        ways.append(("-narrow", NARROW, "light"))
    return ways


def _addresses() -> dict[str, str]:
    from django.urls import reverse

    from robust_queue.models import FailedExecution

    failed = FailedExecution.objects.order_by("-finished_at")[0]
    lists = {
        name: reverse(f"admin:robust_queue_{model}_changelist")
        for name, model in PAGES.items()
    }
    return {
        **lists,
        "job": reverse("admin:robust_queue_job_change", args=[failed.pk]),
        "index": reverse("admin:index"),
    }


if __name__ == "__main__":
    main()
