"""Concurrency keys: who has a slot, and who waits for one."""

import re
from datetime import timedelta
from html import unescape

from django.utils import timezone

from robust_queue.lifecycle import keys
from robust_queue.lifecycle.keys import Waiting, key_statuses
from robust_queue.models import BlockedExecution
from tests.support import rows
from tests.support.statements import statements

URL = "/admin/robust_queue/semaphore/"
BLOCKED = "/admin/robust_queue/blockedexecution/"


def text(response):
    assert response.status_code == 200
    return response.content.decode()


def held(key, **values):
    return rows.claimed(rows.job(concurrency_key=key, **values))


def status(key):
    (found,) = key_statuses("default", [key]).values()
    return found


def test_a_key_that_nobody_wants(as_superuser):
    key = rows.semaphore(key="mail/7", value=2, limit=2)
    assert status(key) == keys.KeyStatus(0, [], Waiting())
    assert "mail/7" in text(as_superuser.get(URL))


def test_who_has_a_slot_and_who_waits(as_superuser):
    key = rows.semaphore(key="mail/7", value=0, limit=3)
    first = held("mail/7", task_path="shop.tasks.send")
    second = held("else\nmail/7")
    held("mail/70")
    since = timezone.now().replace(microsecond=0) - timedelta(hours=2)
    row = rows.blocked(concurrency_key="mail/7")
    BlockedExecution.objects.filter(pk=row.pk).update(created_at=since)
    rows.blocked(concurrency_key="mail/7")
    rows.blocked(concurrency_key="mail/70")
    found = status(key)
    assert [each.job_id for each in found.holders] == [first.pk, second.pk]
    assert (found.taken, found.others) == (3, 1)
    assert found.waiting == Waiting(2, since)
    shown = text(as_superuser.get(URL))
    assert f"/admin/robust_queue/job/{first.pk}/change/" in shown
    assert "shop.<wbr>tasks.<wbr>send" in shown
    assert "and 1 other" in shown


def test_only_some_of_many_holders_are_named(db):
    key = rows.semaphore(key="k", value=0, limit=20)
    for _ in range(keys.HOLDERS_SHOWN + 2):
        held("k")
    found = status(key)
    assert len(found.holders) == keys.HOLDERS_SHOWN
    assert found.others == 20 - keys.HOLDERS_SHOWN


def test_slots_of_ready_jobs_are_counted(as_superuser):
    rows.semaphore(key="k", value=1, limit=4)
    assert "3 jobs" in text(as_superuser.get(URL))


def test_a_limit_that_was_lowered_has_more_holders_than_slots(as_superuser):
    key = rows.semaphore(key="k", value=-2, limit=1)
    assert status(key).taken == 3
    assert "3 jobs" in text(as_superuser.get(URL))


def test_what_waits_is_counted_so_far_and_no_further(as_superuser, monkeypatch):
    monkeypatch.setattr(keys, "MOST_BLOCKED", 3)
    crowded, calm = rows.semaphore(key="a"), rows.semaphore(key="b")
    for _ in range(5):
        rows.blocked(concurrency_key="a")
    for _ in range(2):
        rows.blocked(concurrency_key="b")
    found = key_statuses("default", [crowded, calm])
    first = BlockedExecution.objects.filter(concurrency_key="a").order_by("pk")[0]
    assert found["a"].waiting == Waiting(3, first.created_at, is_cut=True)
    assert (found["b"].waiting.count, found["b"].waiting.is_cut) == (2, False)
    assert "3 or more" in text(as_superuser.get(URL))


def test_a_key_leads_to_the_jobs_that_wait_for_it(as_superuser):
    key = 'a&b="<7>'
    rows.semaphore(key=key, value=0)
    mine = rows.blocked(concurrency_key=key)
    rows.blocked(concurrency_key="other")
    (link,) = re.findall(rf'href="({BLOCKED}\?[^"]+)"', text(as_superuser.get(URL)))
    listed = as_superuser.get(unescape(link))
    assert [row.pk for row in listed.context["cl"].result_list] == [mine.pk]
    assert "By concurrency key" in text(listed)
    assert "By concurrency key" not in text(as_superuser.get(BLOCKED))


def test_a_key_with_a_null_character_has_no_jobs(as_superuser):
    rows.blocked()
    listed = as_superuser.get(BLOCKED, {"key": "a\0"})
    assert list(listed.context["cl"].result_list) == []


def test_a_key_is_found_by_the_whole_of_it(as_superuser):
    for key in ("mail/7", "mail/70"):
        rows.semaphore(key=key)
    found = as_superuser.get(URL, {"q": "mail/7"}).context["cl"].result_list
    assert [row.key for row in found] == ["mail/7"]


def test_jobs_are_named_to_those_who_may_see_them(as_staff):
    rows.semaphore(key="k", value=0)
    row = held("k", task_path="shop.tasks.send")
    shown = text(as_staff("view_semaphore").get(URL))
    assert str(row.pk) not in shown
    assert "shop" not in shown
    assert "1 job" in shown


def test_who_has_no_permission_is_refused(as_staff):
    browser = as_staff("view_claimedexecution", "view_blockedexecution")
    assert browser.get(URL).status_code == 403
    assert browser.post(URL, {"action": "x"}).status_code == 403


def test_hostile_text_is_only_text(as_superuser):
    evil = '<script>alert("x")</script>\u202egnp'
    rows.semaphore(key=evil, value=0)
    held(evil, task_path=evil)
    rows.blocked(concurrency_key=evil)
    assert "<script>alert" not in text(as_superuser.get(URL))
    assert "<script>alert" not in text(as_superuser.get(BLOCKED, {"key": evil}))


def test_three_queries_however_many_keys_there_are(as_superuser):
    rows.semaphore(key="k")
    as_superuser.get(URL)
    with statements() as for_one:
        as_superuser.get(URL)
    for number in range(20):
        rows.semaphore(key=f"k{number}", value=0)
        held(f"k{number}")
        rows.blocked(concurrency_key=f"k{number}")
    with statements() as for_many:
        as_superuser.get(URL)
    # The session, the user, the count and the list come before them.
    assert len(for_many) == len(for_one) == 7
