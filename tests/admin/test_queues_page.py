"""The page of queues: what waits, who serves it, and who serves nothing."""

import json
import time
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone

from robust_queue.lifecycle import service
from robust_queue.lifecycle.pause import pause
from robust_queue.models import Pause, ReadyExecution, Rollup
from tests.support import rows
from tests.support.statements import statements

URL = "/admin/robust_queue/queue/"


def text(response):
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def worker(*queues, quiet=False):
    facts = {"queues": list(queues), "threads": 3, "quiet": quiet}
    return rows.process(metadata=json.dumps(facts))


def ready(queue, number=1, since=timedelta(0)):
    for _ in range(number):
        row = rows.ready(rows.job(queue_name=queue))
        moment = timezone.now() - since
        ReadyExecution.objects.filter(pk=row.pk).update(created_at=moment)


def rollup(queue, minutes_ago, **values):
    minute = int(time.time()) // 60 - minutes_ago
    at = datetime.fromtimestamp(minute * 60, UTC)
    Rollup.objects.create(
        queue_name=queue, span=60, at=at, process_id=uuid4(), **values
    )


def test_what_is_in_a_queue(as_superuser):
    ready("mail", 2, since=timedelta(minutes=5))
    rows.claimed(rows.job(queue_name="mail"))
    server = worker("mail")
    shown = text(as_superuser.get(URL))
    assert '<a href="/admin/robust_queue/job/?queue=mail">mail</a>' in shown
    assert 'data-label="Ready">2</td>' in shown
    assert 'data-label="Running">1</td>' in shown
    assert "5 minutes" in shown
    assert f">{server.name}</a>" in shown
    assert "nobody" not in shown
    assert "nothing ever is" not in shown


def test_how_much_is_done(as_superuser):
    ready("mail")
    rollup("mail", 3, finished=90)
    rollup("mail", 2, finished=60)
    shown = text(as_superuser.get(URL))
    assert "2.5 <svg" in shown
    assert "Finished per minute, in the last hour: 2.5 on average" in shown


def test_many_are_not_counted_to_the_end(as_superuser, monkeypatch):
    monkeypatch.setattr(service, "MOST_OF_ALL", 2)
    ready("mail", 5)
    assert "2+</td>" in text(as_superuser.get(URL))
    rollup("mail", 1, depth=1234, latency=7_200_000)
    shown = text(as_superuser.get(URL))
    assert "≈ 1,234</td>" in shown
    assert "2 hours</td>" in shown


def test_who_serves_it_from_outside(as_superuser):
    ready("pdf")
    rows.process("External", name="printer", metadata='{"queues": ["pdf"]}')
    page = text(as_superuser.get(URL))
    assert 'printer</a></bdi> <span class="rqueue-badge">outside</span>' in page


def test_who_does_not_serve_it(as_superuser):
    ready("left")
    ready("silent")
    worker("silent", quiet=True)
    shown = text(as_superuser.get(URL))
    assert "no live worker serves their queue: <bdi>left</bdi>" in shown
    assert "serve their queue are quiet: <bdi>silent</bdi>" in shown
    assert ">nobody</strong>" in shown
    assert ">only quiet workers</strong>" in shown


def test_who_serves_what_is_not_there(as_superuser):
    ready("mail")
    worker("mail", "mial")
    shown = text(as_superuser.get(URL))
    assert "Workers that serve queues in which nothing ever is" in shown
    assert "<bdi>mial</bdi>" in shown


def test_only_some_workers_are_named(as_superuser):
    ready("mail")
    for _ in range(8):
        worker("mail")
    assert "and 3 others" in text(as_superuser.get(URL))


class TestPages:
    @pytest.fixture(autouse=True)
    def many(self, db):
        Pause.objects.bulk_create(
            Pause(queue_name=f"queue-{number:03}") for number in range(120)
        )

    def test_fifty_at_a_time(self, as_superuser):
        first = text(as_superuser.get(URL))
        assert "Page 1 of 3, 120 queues" in first
        assert "queue-049" in first
        assert "queue-050" not in first
        assert 'href="?page=2"' in first
        last = text(as_superuser.get(URL, {"page": 3}))
        assert "queue-119" in last
        assert 'rel="next"' not in last

    def test_by_name(self, as_superuser):
        shown = text(as_superuser.get(URL, {"name": "E-1"}))
        assert "queue-100" in shown
        assert "queue-099" not in shown
        assert 'value="E-1"' in shown
        assert "No queue has such a name." in text(as_superuser.get(URL + "?name=nope"))
        assert "?name=queue&amp;page=2" in text(as_superuser.get(URL + "?name=queue"))

    @pytest.mark.parametrize(
        "page", ["0", "-1", "x", "", "\0", "9" * 5000, "1e3", "²", "999999999"]
    )
    def test_any_number(self, as_superuser, page):
        shown = text(as_superuser.get(URL, {"page": page}))
        assert "of 3, 120 queues" in shown

    @pytest.mark.parametrize("name", ["\0", "%", "'", "<script>", "x" * 5000])
    def test_any_name(self, as_superuser, name):
        shown = text(as_superuser.get(URL, {"name": name}))
        assert "No queue has such a name." in shown
        assert "<script>" not in shown.split("content-main")[1]


class TestButtons:
    def test_the_page_stays_where_it_was(self, as_superuser):
        ready("mail")
        response = as_superuser.post(URL + "?name=ma", {"pause": "mail"})
        assert response["Location"] == URL + "?name=ma"
        shown = text(as_superuser.get(URL))
        assert '<span class="rqueue-badge">paused</span>' in shown
        assert 'name="resume" value="mail"' in shown
        assert LogEntry.objects.get().object_id == "mail"

    def test_a_paused_queue_says_since_when_and_until_when(self, as_superuser):
        pause("default", "mail", until=timedelta(hours=1))
        shown = text(as_superuser.get(URL))
        assert "since " in shown
        assert "until " in shown

    def test_they_take_a_permission(self, as_staff):
        ready("mail")
        browser = as_staff("view_job")
        assert 'name="pause"' not in text(browser.get(URL))
        for label in ("pause", "resume", "clear"):
            assert browser.post(URL, {label: "mail"}).status_code == 403
        assert not Pause.objects.exists()
        assert ReadyExecution.objects.count() == 1

    @pytest.mark.parametrize("label", ["pause", "resume", "clear"])
    def test_a_name_that_is_none(self, as_superuser, label):
        shown = text(as_superuser.post(URL, {label: "a\0b"}, follow=True))
        assert "no control characters" in shown


def test_hostile_names_are_only_text(as_superuser):
    evil = "<script>alert(1)</script>\u202egnp"
    ready(evil)
    worker(evil, evil + "2")
    shown = text(as_superuser.get(URL))
    assert "<script>alert" not in shown
    assert "\ufffdgnp" in shown


def test_few_queries_however_many_queues_there_are(as_superuser):
    ready("queue-0")
    worker("queue-0", "unused")
    as_superuser.get(URL)
    with statements() as for_few:
        as_superuser.get(URL)
    for number in range(1, 60):
        ready(f"queue-{number}")
        worker(f"queue-{number}", "unused")
    with statements() as for_many:
        as_superuser.get(URL)
    # The session and the user come before them, and what was done last.
    assert len(for_many) == len(for_few) <= 12
