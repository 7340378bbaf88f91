"""How single values are shown."""

from datetime import timedelta
from html import unescape

import pytest
from django.contrib.admin import AdminSite
from django.contrib.auth.models import User
from django.test import Client
from django.urls import path, reverse

from robust_queue.admin import display
from robust_queue.admin.executions import FailedAdmin
from robust_queue.models import FailedExecution, Job
from tests.support import rows

# A site that shows failures alone.
ops = AdminSite(name="ops")
ops.register(FailedExecution, FailedAdmin)
urlpatterns = [path("ops/", ops.urls)]


@pytest.mark.parametrize("stored", ["not JSON", "[1]", '{"args": 1}', "{}"])
def test_what_cannot_be_read_is_shown_as_it_is(stored):
    shown = display.arguments(stored, rows.TASK, openly=True)
    assert f">{stored}<" in unescape(shown)
    assert display.arguments("", rows.TASK) == "-"


def test_very_long_text_is_cut(monkeypatch):
    monkeypatch.setattr(display, "SHOWN_LENGTH", 3)
    assert "abc\n… 2 more characters" in display.block("abcde")
    assert "abc</pre>" in display.block("abc")


@pytest.mark.parametrize(
    ("length", "said"),
    [
        (timedelta(seconds=1), "1 second"),
        (timedelta(seconds=59), "59 seconds"),
        (timedelta(minutes=119), "119 minutes"),
        (timedelta(hours=47), "47 hours"),
        (timedelta(days=3, hours=5), "3 days"),
    ],
)
def test_durations_are_said_in_one_unit(length, said):
    assert display.duration(length) == said


def test_paths_may_be_broken_behind_their_dots():
    assert display.path("shop.tasks.<b>") == "shop.<wbr>tasks.<wbr>&lt;b&gt;"


def test_what_a_site_has_no_page_for_is_not_linked(settings, db):
    settings.ROOT_URLCONF = __name__
    row = rows.failed()
    assert display.link(ops, Job, row.pk, "<job>") == "&lt;job&gt;"
    assert "<a href=" in display.link(ops, FailedExecution, row.pk, "failure")
    browser = Client()
    browser.force_login(User.objects.create_superuser("root"))
    page = reverse("ops:robust_queue_failedexecution_change", args=[row.pk])
    response = browser.get(page)
    assert response.status_code == 200
    assert str(row.pk) in response.content.decode()
