"""Who serves which queue, page by page, in few statements."""

import json
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.test import override_settings
from django.utils import timezone

from robust_queue.lifecycle import service
from robust_queue.lifecycle.pause import pause
from robust_queue.lifecycle.service import queue_page
from robust_queue.models import ReadyExecution, Rollup
from tests.support import rows
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

LONG = timedelta(hours=3)
BACKEND = "robust_queue.backend.RobustQueueBackend"


def worker(*queues, quiet=False, **values):
    facts = {"queues": list(queues), "threads": 3, "quiet": quiet}
    return rows.process(metadata=json.dumps(facts), **values)


def ready(queue, priority=0):
    return rows.ready(rows.job(queue_name=queue, priority=priority))


def rollup(queue, span=3600, ago=timedelta(0)):
    at = datetime.now(UTC) - ago
    at = datetime.fromtimestamp(at.timestamp() // span * span, UTC)
    Rollup.objects.create(queue_name=queue, span=span, at=at, process_id=uuid4())


def served(page):
    return {row.status.name: [each.name for each in row.served_by] for row in page.rows}


class TestThePage:
    def test_what_is_in_a_queue(self):
        since = timezone.now() - timedelta(minutes=5)
        ready("mail")
        oldest = ready("mail", priority=-5)
        ReadyExecution.objects.filter(pk=oldest.pk).update(created_at=since)
        rows.claimed(rows.job(queue_name="mail"))
        pause("default", "mail")
        (row,) = queue_page("default").rows
        status = row.status
        assert (status.name, status.ready, status.running) == ("mail", 2, 1)
        assert status.is_paused
        assert status.oldest_ready_at == since
        assert timedelta(minutes=5) <= status.latency < timedelta(minutes=6)

    @override_settings(ROBUST_QUEUE={"workers": [{"queues": ["configured", "x*"]}]})
    def test_which_queues_there_are(self):
        ready("ready")
        pause("default", "paused")
        rows.claimed(rows.job(queue_name="running"))
        rollup("done")
        rollup("", ago=timedelta(0))
        rollup("long-ago", ago=LONG)
        names = [each.status.name for each in queue_page("default").rows]
        assert names == ["configured", "done", "paused", "ready", "running"]

    def test_pages_and_names(self):
        for number in range(7):
            ready(f"queue-{number}")
        first = queue_page("default", size=3)
        assert (first.number, first.pages, first.total) == (1, 3, 7)
        assert list(served(first)) == ["queue-0", "queue-1", "queue-2"]
        last = queue_page("default", page=10**30, size=3)
        assert (last.number, list(served(last))) == (3, ["queue-6"])
        assert queue_page("default", page=-1, size=3).number == 1
        found = queue_page("default", contains="QUEUE-5")
        assert (list(served(found)), found.pages) == (["queue-5"], 1)
        nothing = queue_page("default", contains="\0%_")
        assert (nothing.rows, nothing.number, nothing.pages) == ([], 1, 1)

    def test_counts_end_somewhere(self, monkeypatch):
        monkeypatch.setattr(service, "MOST_OF_ALL", 4)
        for _ in range(5):
            ready("long")
        ready("short")
        page = queue_page("default")
        assert page.counted_to == 2
        assert [each.status.ready for each in page.rows] == [3, 1]
        assert queue_page("default", contains="short").counted_to == 4


class TestWhoServes:
    def test_by_name_by_prefix_and_all(self):
        for name in ("mail", "web-1", "other"):
            ready(name)
        mail, web = worker("mail", name="a"), worker("web*", name="b")
        worker("*", name="dead", silent_for=LONG)
        page = queue_page("default")
        assert served(page) == {"mail": [mail.name], "web-1": [web.name], "other": []}
        assert list(page.unserved) == ["other"]
        worker("*", name="all")
        page = queue_page("default")
        assert served(page)["other"] == ["all"]
        assert list(page.unserved) == []

    def test_a_paused_queue_is_not_waited_for(self):
        ready("mail")
        pause("default", "mail")
        assert list(queue_page("default").unserved) == []

    def test_those_that_are_quiet_take_nothing(self):
        ready("mail")
        quiet = worker("mail", quiet=True)
        page = queue_page("default")
        assert served(page) == {"mail": [quiet.name]}
        assert page.rows[0].is_left_by_the_quiet
        assert (list(page.unserved), list(page.only_quiet)) == ([], ["mail"])
        worker("*")
        page = queue_page("default")
        assert not page.rows[0].is_left_by_the_quiet
        assert list(page.only_quiet) == []

    @pytest.mark.parametrize("metadata", ["", "nonsense", '{"queues": 3}'])
    def test_who_tells_nonsense_serves_everything(self, metadata):
        ready("mail")
        rows.process(metadata=metadata)
        assert list(queue_page("default").unserved) == []


class TestWhoWaitsForNothing:
    def idle(self):
        return {it.worker.name: list(it.queues) for it in queue_page("default").idle}

    def test_a_queue_that_nobody_uses(self):
        ready("mail")
        ready("web-1")
        worker("mail", "mial", "web*", "wbe*", "*", name="it")
        worker("mail", name="other")
        assert self.idle() == {"it": ["mial", "wbe*"]}

    def test_one_that_was_used_within_a_week(self):
        rollup("mail", ago=timedelta(days=5))
        rollup("web-1", ago=timedelta(days=5))
        worker("mail", "web*", "none*", name="it")
        assert self.idle() == {"it": ["none*"]}

    @override_settings(
        TASKS={"default": {"BACKEND": BACKEND, "QUEUES": ["mail"]}},
        ROBUST_QUEUE={"workers": [{"queues": ["mail", "mial"]}]},
    )
    def test_one_that_an_alias_accepts_though_not_one_that_only_workers_know(self):
        worker("mail", "mial", name="it")
        assert self.idle() == {"it": ["mial"]}


def test_seven_statements_however_much_there_is():
    def fill(numbers):
        for number in numbers:
            ready(f"queue-{number:02}")
            worker(f"queue-{number:02}", f"unused-{number}")
            pause("default", f"paused-{number:02}")

    fill(range(2))
    with statements() as for_few:
        queue_page("default")
    fill(range(2, 30))
    with statements() as for_many:
        assert queue_page("default").total == 60
    assert len(for_many) == len(for_few) == 7
