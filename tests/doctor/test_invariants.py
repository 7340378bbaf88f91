"""The deep examination: break each guarantee by hand and see it named."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from robust_queue.doctor import examine, findings
from robust_queue.models import Job, Process, ReadyExecution, Semaphore
from tests.support import rows
from tests.support.backlog import fill
from tests.support.findings import only
from tests.support.rows import MAKERS
from tests.support.statements import statements

pytestmark = pytest.mark.django_db


def test_a_job_that_stands_nowhere(ask):
    lost = rows.job()
    rows.ready()
    severity, offenders = only(ask(deep=True), "lost")
    assert (severity, offenders) == ("problem", (f"job {lost.pk} ({rows.TASK})",))


STATES = ("scheduled", "ready", "blocked", "claimed", "failed", "finished")
PAIRS = [(a, b) for a in STATES for b in STATES if STATES.index(a) < STATES.index(b)]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_job_that_stands_in_two_places(ask, crew, first, second):
    job = rows.job()
    for state in (first, second):
        more = {"by": crew["Worker"]} if state == "claimed" else {}
        getattr(rows, state)(job, **more)
    severity, offenders = ask(deep=True)["Jobs stand in two places at once."]
    assert severity == "problem"
    assert offenders == (f"job {job.pk} is {first} and {second}",)


@pytest.mark.parametrize("state", [*STATES, "attempt"])
def test_a_row_without_a_job(ask, crew, state):
    more = {"by": crew["Worker"]} if state == "claimed" else {}
    row = getattr(rows, state)(**more)
    job_id = row.job_id
    table = row._meta.db_table
    # As the database would, were somebody to delete the job by hand.
    Job.objects.filter(pk=job_id)._raw_delete("default")
    severity, offenders = ask(deep=True)["Rows belong to no job."]
    assert severity == "problem"
    assert f"job {job_id} in {table}" in offenders


def test_a_claim_of_a_process_that_does_not_exist(ask, crew):
    claim = rows.claimed(by=rows.process())
    assert ask(deep=True) == {}
    Process.objects.filter(pk=claim.process_id).delete()
    severity, offenders = only(ask(deep=True), "do not exist")
    wanted = f"job {claim.pk}, claimed by process {claim.process_id}"
    assert (severity, offenders) == ("problem", (wanted,))


def test_a_claim_of_a_process_that_is_silent(ask):
    silent = rows.process(silent_for=timedelta(hours=1))
    claim = rows.claimed(by=silent)
    text = "Jobs are claimed by processes that are silent."
    severity, offenders = ask(deep=True)[text]
    wanted = f"job {claim.pk}, claimed by process {silent.pk}"
    assert (severity, offenders) == ("problem", (wanted,))


def test_semaphores_count_those_who_hold_a_slot(ask, crew):
    rows.ready(rows.job(concurrency_key="account-7"))
    rows.claimed(rows.job(concurrency_key="account-7"), by=crew["Worker"])
    rows.blocked(rows.job(concurrency_key="account-7"))
    rows.finished(rows.job(concurrency_key="account-7"))
    rows.ready(rows.job(concurrency_key="account-8"))
    rows.semaphore(key="account-7", limit=2, value=0)
    rows.semaphore(key="account-8", limit=1, value=0)
    rows.semaphore(key="idle", limit=3, value=3)
    assert ask(deep=True) == {}
    Semaphore.objects.filter(pk="account-7").update(limit=3, value=2)
    Semaphore.objects.filter(pk="idle").update(value=-1)
    severity, offenders = ask(deep=True)[
        "Semaphores miscount: free is not limit minus held."
    ]
    assert severity == "problem"
    assert offenders == (
        "account-7: 2 of 3 free, 2 held",
        "idle: -1 of 3 free, 0 held",
    )


def test_a_limit_that_was_lowered_has_more_holders_than_slots(ask):
    for _ in range(3):
        rows.ready(rows.job(concurrency_key="account-7"))
    semaphore = rows.semaphore(key="account-7", limit=2, value=-1)
    assert ask(deep=True) == {}
    Semaphore.objects.filter(pk=semaphore.pk).update(value=0)
    _, offenders = only(ask(deep=True), "miscount")
    assert offenders == ("account-7: 0 of 2 free, 3 held",)


def test_a_blocked_job_whose_key_has_a_free_slot(ask):
    row = rows.blocked()
    text = "Jobs are blocked although their key has a free slot: the next sweep's work."
    wanted = ("warning", (f"job {row.pk}, blocked by account-7",))
    assert ask(deep=True)[text] == wanted  # there is no semaphore at all
    semaphore = rows.semaphore(key="account-7", limit=1, value=1)
    assert ask(deep=True)[text] == wanted
    Semaphore.objects.filter(pk=semaphore.pk).update(value=0)
    assert text not in ask(deep=True)


@pytest.mark.parametrize("state", ["scheduled", "ready", "blocked", "claimed"])
def test_more_attempts_than_the_task_allows(ask, crew, state, monkeypatch):
    class Limited:
        max_attempts = 3

    known = {rows.TASK: Limited}
    monkeypatch.setattr("robust_queue.registry.find", known.get)
    more = {"by": crew["Worker"]} if state == "claimed" else {}
    make = getattr(rows, state)
    bad = make(attempts=4, **more)
    make(attempts=3, **more)
    make(rows.job(task_path="shop.tasks.unlimited"), attempts=9, **more)
    text = "Jobs have more attempts than their task allows: were they retried by hand?"
    severity, offenders = ask(deep=True)[text]
    assert severity == "warning"
    assert offenders == (f"job {bad.pk} ({rows.TASK}) is {state} after 4 of 3",)


def test_only_the_first_rows_are_named_and_the_others_counted(ask, monkeypatch):
    monkeypatch.setattr(findings, "SHOWN", 3)
    fill(5)
    ReadyExecution.objects.all().delete()
    _, offenders = only(ask(deep=True), "lost")
    assert len(offenders) == 4
    assert offenders[-1] == "… and 2 more"


def test_rows_of_several_tables_are_counted_together(ask, monkeypatch):
    monkeypatch.setattr(findings, "SHOWN", 3)
    for state in ("scheduled", "ready", "failed"):
        for _ in range(2):
            getattr(rows, state)()
    Job.objects.all()._raw_delete("default")
    _, offenders = ask(deep=True)["Rows belong to no job."]
    assert len(offenders) == 4
    assert offenders[-1] == "… and 3 more"


def test_many_semaphores_are_counted_too(ask, monkeypatch):
    monkeypatch.setattr("robust_queue.doctor.invariants.SHOWN", 2)
    for _ in range(5):
        rows.semaphore(value=0)
    _, offenders = only(ask(deep=True), "miscount")
    assert len(offenders) == 3
    assert offenders[-1] == "… and 3 more"


def test_the_number_of_statements_does_not_depend_on_the_number_of_rows(ask):
    counts = []
    for _ in range(2):
        for make in MAKERS.values():
            make()
        with statements() as sent:
            ask(deep=True)
        counts.append(len(sent))
    assert counts[0] == counts[1]


@pytest.mark.django_db(databases=["default", "other"])
def test_only_the_database_that_is_asked_for_is_examined(ask):
    Job.objects.using("other").create(
        id=uuid4(), task_path="x", queue_name="q", enqueued_at=timezone.now()
    )
    assert ask(deep=True) == {}
    (lost,) = [f for f in examine("other", deep=True) if "lost" in f.text]
    assert len(lost.rows) == 1
