"""Whoever means harm: without the permission, with names that are code, with nonsense.

What can be done is found in the registry of the admin, so that whatever is added is
asked about as well.
"""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from robust_queue.admin import acting, base
from robust_queue.models import (
    Operation,
)
from tests.support import rows
from tests.support.invariants import states

from .deeds import (
    address,
    addresses,
    make_world,
    pages,
)

EVIL = "<script>alert(1)</script>\"'\u202e"
SANE = 2_000_000
EVERYTHING = {"confirmed": "1", "post": "yes", "order": "run", "database": "default"}


def evil_world():
    """Rows of all tables that have code where names and texts should be."""
    escaped = '{"args":["\\ud800\\u0000<script>alert(1)</script>"],"kwargs":{}}'
    huge = json.dumps({"args": ["<script>alert(1)</script>" * 400_000], "kwargs": {}})
    long = EVIL + "x" * 1_000_000 + "\n" + EVIL
    failure = {"exception_class": EVIL, "message": long, "worker_id": EVIL}
    facts = json.dumps({"queues": [EVIL], "threads": 1, "tuned": {"queues": [EVIL]}})
    worker = rows.process(name=EVIL, hostname=EVIL, metadata=facts)
    names = {"queue_name": EVIL, "task_path": EVIL, "concurrency_key": EVIL}

    def job(**values):
        given = {"arguments": escaped, "metadata": escaped, "unique_key": EVIL}
        return rows.job(**{**names, **given, **values})

    rows.ready(job(arguments=huge), partition_key=EVIL)
    rows.scheduled(job(arguments="<script>alert(1)</script>"))
    rows.blocked(job(), concurrency_key=EVIL)
    rows.claimed(job(), by=worker)
    rows.finished(job(), result=long, worker_id=EVIL)
    failed = rows.failed(job(), traceback=long, **failure)
    rows.attempt(failed.job, traceback=long, **failure)
    rows.isolated_run(failed.job, node=EVIL, output=long, exit=EVIL)
    rows.pause(queue_name=EVIL)
    rows.task_pause(task_path=EVIL)
    rows.semaphore(key=EVIL)
    rows.unique_lock(key=EVIL)
    rows.rate_bucket(key=EVIL)
    rows.tuning(process_id=worker.pk, queues=EVIL)
    rows.cancellation(job_id=failed.pk)
    rows.rollup(queue_name=EVIL, finished=3, depth=7)
    rows.recurring_task(
        key=EVIL, task_path=EVIL, schedule=EVIL, timezone=EVIL, description=long
    )
    rows.recurring_execution(
        task_key=EVIL, exception_class=EVIL, reason=EVIL, job_id=failed.pk
    )
    rows.operation(criteria=EVIL, requested_by=EVIL, problem=long)
    rows.api_token(name=EVIL, scopes=EVIL, created_by=EVIL)
    rows.operation(
        criteria=json.dumps({"queue": EVIL}), passed_over=json.dumps({EVIL: 1})
    )


@pytest.mark.parametrize("part", ["all of it", "what is live"])
def test_names_are_never_code(root, browse, part):
    evil_world()
    browser = browse(root)
    headers = {} if part == "all of it" else {"X-Robust-Queue-Live": "1"}
    asked = addresses() if not headers else [address(f"{n}_changelist") for n in PAGES]
    for each in asked:
        response = browser.get(
            each, {"verb": "discard"} if "bulk" in each else {}, headers=headers
        )
        is_form = each.endswith(("/add/", "/delete/", "/order/", "/stop/", "/revoke/"))
        allowed = {200, 403, 405} if is_form or "/do/" in each else {200}
        assert response.status_code in allowed, each
        assert b"<script>alert" not in response.content, each
        assert len(response.content) < SANE, (each, len(response.content))


PAGES = ("overview", "queue", "failures", "processtree")

NONSENSE = ["\0", "-1", "9" * 40, "NaN", "x" * 3_000]
OF_ALL = ["p", "q", "o", "all", "pk", "_to_field", "e"]
OF_SOME = {
    "job": ["older", "newer", "state", "priority", "enqueued_from", "worker", "verb"],
    "queue": ["page", "name"],
    "overview": ["period"],
    "rollup": ["span"],
    "process": ["kind"],
    "failedexecution": ["kind", "exception", "queue", "finished_at__gte"],
    "finishedexecution": ["finished_at__lt", "job_id"],
    "blockedexecution": ["key", "queue"],
    "recurringtask": ["enabled__exact", "static__exact"],
    "recurringexecution": ["outcome__exact", "task_key", "job_id"],
}


@pytest.mark.parametrize("name", sorted(pages()))
def test_nonsense_in_an_address_is_no_error(root, browse, name):
    make_world()
    browser, list_of = browse(root), address(f"{name}_changelist")
    for parameter in [*OF_ALL, *OF_SOME.get(name, [])]:
        for value in [*NONSENSE, NONSENSE]:
            status = browser.get(list_of, {parameter: value}).status_code
            assert status in {200, 302, 400}, (parameter, value)


CONCEALED = {
    "failedexecution": ["message__startswith=The", "traceback__contains=shop"],
    "attempt": ["message__startswith=The"],
    "finishedexecution": ["result__contains=done", "job__arguments__contains=ada"],
    "recurringtask": ["arguments__contains=1"],
    "isolatedrun": ["output__contains=Half"],
    "claimedexecution": ["token__gt=0"],
    "apitoken": ["digest__startswith=a", "digest=a"],
    "job": ["arguments__contains=ada", "metadata__contains=a"],
}


@pytest.mark.parametrize("name", CONCEALED)
def test_what_is_concealed_cannot_be_guessed_by_filters(root, browse, name):
    make_world()
    for query in CONCEALED[name]:
        found = browse(root).get(address(f"{name}_changelist", query=f"?{query}"))
        assert found.status_code in {302, 400}, query


def test_no_list_is_sorted_by_what_no_index_is_for(root, browse):
    make_world()
    rows.failed(finished_at=timezone.now() - timedelta(days=1))
    listed = address("failedexecution_changelist", query="?o=5")
    found = browse(root).get(listed).context["cl"].result_list
    moments = [row.finished_at for row in found]
    assert moments == sorted(moments, reverse=True)


@pytest.mark.parametrize(
    "name", sorted(model._meta.model_name for model in rows.MAKERS)
)
def test_the_page_of_what_is_no_key_is_not_there(root, browse, name):
    browser = browse(root)
    for key in ["%00", "9" * 40, "-1", "x"]:
        page = address(f"{name}_changelist") + f"{key}/change/"
        assert browser.get(page).status_code == 302, key


def test_no_number_is_too_large_to_be_ticked(root, browse):
    ticked = {"action": "run_selected", "_selected_action": ["9" * 40], "index": "0"}
    answer = browse(root).post(address("recurringtask_changelist"), ticked)
    assert answer.status_code in {302, 400}


def test_older_rows_than_a_list_has_looked_at_are_left_alone(root, browse, monkeypatch):
    """A search for a task ends where the list ends; an operation would go on."""
    monkeypatch.setattr(base, "SEARCHED", 4)
    monkeypatch.setattr(acting, "REACH", 4)
    monkeypatch.setattr(acting, "AT_ONCE", 1)
    old, *others = [rows.failed() for _ in range(5)]
    ticked = {"_selected_action": [str(others[0].pk)], "select_across": "1"}
    chosen = {"action": "discard_selected", "index": "0", **ticked}
    listed = address("failedexecution_changelist", query=f"?q={rows.TASK}")
    browse(root).post(listed, chosen)
    assert states() == {old.pk: "failed"}
    assert not Operation.objects.exists()
