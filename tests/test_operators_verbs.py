"""``manage.py robust_queue retry``, ``discard`` and ``failures``."""

import io
import sys
from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings
from django.utils import timezone

from robust_queue.lifecycle import selection
from robust_queue.lifecycle.retry import retry
from robust_queue.management.verbs import changing
from robust_queue.management.verbs.choosing import coming_moment, moment
from robust_queue.models import Job, ScheduledExecution
from tests.support import rows
from tests.support.invariants import states

pytestmark = pytest.mark.django_db


class Terminal(io.StringIO):
    def isatty(self):
        return True


def command(*words, out=None):
    """What the command says."""
    out = out or io.StringIO()
    call_command("robust_queue", *map(str, words), stdout=out)
    return out.getvalue()


def refused(*words):
    with pytest.raises(CommandError) as refusal:
        command(*words)
    return refusal.value


@pytest.fixture
def terminal(monkeypatch):
    """Somebody sits there, and answers every question like this."""

    def answering(answer):
        asked = []

        def ask(question):
            asked.append(question)
            return answer

        monkeypatch.setattr(sys, "stdin", Terminal())
        monkeypatch.setattr("builtins.input", ask)
        return asked

    return answering


class TestNamedJobs:
    def test_retry(self):
        first, second, third = (rows.failed().pk for _ in range(3))
        assert command("retry", first, second, second) == "2 jobs retried.\n"
        assert states() == {first: "ready", second: "ready", third: "failed"}

    @pytest.mark.parametrize("state", ["failed", "ready", "scheduled", "blocked"])
    def test_discard(self, state):
        row = getattr(rows, state)()
        assert command("discard", row.pk) == "1 job discarded.\n"
        assert states() == {}

    def test_those_that_refuse_are_named_and_the_others_are_done(self):
        failed, claimed, finished = rows.failed(), rows.claimed(), rows.finished()
        unknown = uuid4()
        ids = [claimed.pk, unknown, finished.pk, failed.pk]
        refusal = refused("discard", *ids)
        assert str(refusal).splitlines() == [
            f"Job {claimed.pk} is claimed by a worker.",
            f"Job {unknown} is unknown.",
            f"Job {finished.pk} is finished.",
        ]
        assert refusal.returncode == 1
        assert states() == {claimed.pk: "claimed", finished.pk: "finished"}

    def test_only_what_has_failed_is_retried(self):
        ready, claimed = rows.ready(), rows.claimed()
        assert str(refused("retry", ready.pk, claimed.pk)).splitlines() == [
            f"Job {ready.pk} is ready.",
            f"Job {claimed.pk} is claimed by a worker.",
        ]

    @pytest.mark.parametrize("verb", ["retry", "discard"])
    def test_rehearsal(self, verb):
        row, claimed = rows.failed(), rows.claimed()
        done = "retried" if verb == "retry" else "discarded"
        assert command(verb, row.pk, "--dry-run") == f"1 job would be {done}.\n"
        assert "claimed" in str(refused(verb, claimed.pk, "--dry-run"))
        assert states() == {row.pk: "failed", claimed.pk: "claimed"}

    def test_what_is_no_id(self):
        assert "invalid UUID value: 'nonsense'" in str(refused("retry", "nonsense"))


class TestMatchingJobs:
    def test_all(self):
        made = [rows.failed().pk for _ in range(2)]
        waiting = rows.ready().pk
        said = command("retry", "--all").splitlines()
        assert said == ["2 failed jobs to be retried.", "2 jobs retried."]
        assert states() == dict.fromkeys([*made, waiting], "ready")

    @pytest.mark.parametrize(
        ("words", "row"),
        [
            (["--task", "shop.tasks.pay"], {"task_path": "shop.tasks.pay"}),
            (["--queue", "mail"], {"queue_name": "mail"}),
            (["--kind", "timed_out"], {"kind": "timed_out"}),
            (["--exception", "Refused"], {"exception_class": "shop.Refused"}),
            (["--until", "2h"], {"finished_at": timedelta(hours=3)}),
        ],
    )
    @pytest.mark.parametrize("verb", ["retry", "discard"])
    def test_filters(self, verb, words, row):
        other = rows.failed().pk
        of_job = {k: row[k] for k in row if k in ("task_path", "queue_name")}
        of_row = {k: row[k] for k in row if k not in of_job}
        if age := of_row.get("finished_at"):
            of_row["finished_at"] = timezone.now() - age
        mine = rows.failed(rows.job(**of_job), **of_row).pk
        said = command(verb, *words).splitlines()
        assert said[0].startswith("1 failed job to be ")
        assert states() == {other: "failed"} | (
            {mine: "ready"} if verb == "retry" else {}
        )

    def test_the_usual_kind(self):
        rows.failed(kind="crashed")
        rows.failed()
        assert "1 job retried." in command("retry", "--kind", "error")

    def test_pending_jobs(self):
        """Whatever is not over, in as far as that can be done to it."""
        for make in (rows.scheduled, rows.ready, rows.blocked):
            make()
        left = {rows.claimed().job.pk: "claimed", rows.failed().job.pk: "failed"}
        said = command("discard", "--all", "--state", "pending")
        assert said == "3 pending jobs to be discarded.\n3 jobs discarded.\n"
        assert states() == left

    def test_waiting_jobs(self):
        failed = rows.failed().pk
        rows.ready()
        said = command("discard", "--all", "--state", "ready").splitlines()
        assert said == ["1 ready job to be discarded.", "1 job discarded."]
        assert states() == {failed: "failed"}

    def test_none(self):
        assert command("retry", "--all") == "No failed job matches.\n"

    def test_rehearsal(self):
        row = rows.failed()
        said = command("discard", "--all", "--dry-run")
        assert said == "1 failed job would be discarded.\n"
        assert states() == {row.pk: "failed"}

    def test_what_somebody_else_has_got_hold_of(self, monkeypatch):
        first, _ = rows.failed(), rows.failed()
        walk = selection.walk

        def walk_and_be_overtaken(*args):
            for ids in walk(*args):
                retry("default", first.pk)
                yield ids

        monkeypatch.setattr(selection, "walk", walk_and_be_overtaken)
        said = command("discard", "--all").splitlines()
        assert said[-1] == "1 job discarded. Passed over: 1 ready."

    @pytest.mark.parametrize(
        ("words", "problem"),
        [
            (["retry"], "Which jobs?"),
            (["discard", "--state", "ready"], "Which jobs?"),
            (["retry", "--all", uuid4()], "Give either ids, or"),
            (["discard", "--queue", "mail", uuid4()], "Give either ids, or"),
            (["discard", "--state", "ready", "--kind", "crashed"], "Only failed jobs"),
            (["retry", "--all", "--state", "ready"], "invalid choice: 'ready'"),
            (["discard", "--all", "--state", "claimed"], "invalid choice: 'claimed'"),
            (["retry", "--since", "yesterday"], "'yesterday' is neither a moment"),
        ],
    )
    def test_a_line_that_makes_no_sense(self, words, problem):
        rows.failed(), rows.ready()
        assert problem in str(refused(*words))
        assert sorted(states().values()) == ["failed", "ready"]


class TestQuestions:
    @pytest.fixture(autouse=True)
    def large(self, monkeypatch):
        monkeypatch.setattr(changing, "LARGE", 2)
        return [rows.failed().pk for _ in range(2)]

    def test_a_large_discard_is_asked_about(self, terminal, large):
        asked = terminal("n")
        with pytest.raises(CommandError, match="Nothing was discarded"):
            command("discard", "--all", out=Terminal())
        assert asked == ["Discard 2 jobs for good? [y/N] "]
        assert states() == dict.fromkeys(large, "failed")

    @pytest.mark.parametrize("answer", ["y", " Yes "])
    def test_those_who_agree_have_their_way(self, terminal, answer):
        terminal(answer)
        assert "2 jobs discarded." in command("discard", "--all", out=Terminal())
        assert states() == {}

    @pytest.mark.parametrize("words", [["--all", "--yes"], ["--queue", "mail"]])
    def test_not_if_told_so_and_not_about_few(self, terminal, words):
        rows.failed(rows.job(queue_name="mail"))
        asked = terminal("n")
        command("discard", *words, out=Terminal())
        assert asked == []

    def test_not_about_what_can_be_undone(self, terminal):
        asked = terminal("n")
        command("retry", "--all", out=Terminal())
        assert asked == []

    def test_not_where_nobody_would_answer(self, monkeypatch):
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        assert "2 jobs discarded." in command("discard", "--all", out=Terminal())


def test_progress_is_shown_to_those_who_look_on(monkeypatch):
    monkeypatch.setattr(selection, "BATCH_SIZE", 2)
    for _ in range(3):
        rows.failed()
    said = command("retry", "--all", out=Terminal())
    assert "\r2 of 3 …\r3 of 3 …\n3 jobs retried." in said


@pytest.mark.django_db(databases=["default", "other"])
def test_another_database():
    row = rows.failed()
    said = command("--database", "other", "retry", "--all")
    assert said == "No failed job matches.\n"
    assert states() == {row.pk: "failed"}


class TestFailures:
    def test_the_latest_first(self):
        now = timezone.now()
        old = rows.failed(finished_at=now - timedelta(hours=1), kind="timed_out")
        new = rows.failed(finished_at=now, message="refused\ntwice")
        first, second = command("failures").splitlines()
        at = f"{now:%Y-%m-%d %H:%M:%S}"
        assert first == (f"{new.pk}  {at}  {rows.TASK}  error  ValueError: refused")
        assert str(old.pk) in second
        assert "  timed out  ValueError: The card was refused." in second

    def test_no_more_than_asked_for(self):
        made = [rows.failed().pk for _ in range(3)]
        first, last = command("failures", "--limit", 1).splitlines()
        assert first.startswith(str(made[-1]))
        assert last == "1 of 3 failed jobs: --limit shows more."
        assert len(command("failures", "--limit", 3).splitlines()) == 3
        assert "at least 1" in str(refused("failures", "--limit", 0))

    def test_filtered(self):
        rows.failed()
        row = rows.failed(kind="crashed")
        assert command("failures", "--kind", "crashed").startswith(str(row.pk))
        assert command("failures", "--kind", "expired") == "No failed job matches.\n"

    def test_nothing_in_a_message_reaches_the_terminal(self):
        rows.failed(message="\x1b[2J" + "x" * 200)
        said = command("failures")
        assert "\x1b" not in said
        assert said.endswith("xxx…\n")

    def test_a_failure_without_words(self):
        rows.failed(message="")
        assert command("failures").endswith("  ValueError\n")


class TestRerun:
    def test_a_job_is_replaced(self):
        row = rows.failed()
        arguments = '{"args": [43], "kwargs": {}}'
        words = ["--arguments", arguments, "--queue", "urgent", "--priority", "-3"]
        said = command("rerun", row.pk, *words)
        job = Job.objects.get()
        assert said == f"Job {row.pk} runs anew as job {job.pk}.\n"
        assert job.arguments == '{"args":[43],"kwargs":{}}'
        assert (job.queue_name, job.priority) == ("urgent", -3)

    def test_what_is_not_given_stays_as_it_was(self):
        row = rows.failed(rows.job(queue_name="mail", priority=2))
        command("rerun", row.pk, "--run-after", "2h")
        job = Job.objects.get()
        assert (job.queue_name, job.priority) == ("mail", 2)
        assert job.arguments == rows.ARGUMENTS
        assert ScheduledExecution.objects.get().scheduled_at > timezone.now()

    @pytest.mark.parametrize(
        ("words", "problem"),
        [
            (["--arguments", "{"], "is not JSON"),
            (["--arguments", "[]"], "is not a call with args and kwargs"),
            (["--queue", "mail*"], "a name has no"),
            (["--priority", "1000"], "priority"),
        ],
    )
    def test_what_is_wrong_is_told(self, words, problem):
        row = rows.failed()
        refusal = refused("rerun", row.pk, *words)
        assert problem in str(refusal)
        assert refusal.returncode == 1
        assert states() == {row.pk: "failed"}

    def test_a_claimed_job(self):
        row = rows.claimed()
        assert f"{row.pk} is claimed" in str(refused("rerun", row.pk))


class TestMoments:
    def test_so_long_ago(self):
        for text, age in (("90s", 90), ("15m", 900), ("2h", 7200), ("1d", 86_400)):
            expected = timezone.now() - timedelta(seconds=age)
            assert abs(moment(text) - expected) < timedelta(seconds=5)
            later = timezone.now() + timedelta(seconds=age)
            assert abs(coming_moment(text) - later) < timedelta(seconds=5)

    def test_by_the_calendar_of_the_project(self):
        with timezone.override("Asia/Tokyo"):
            assert moment("2026-11-18T09:30").isoformat() == "2026-11-18T00:30:00+00:00"
        assert moment("2026-11-18T09:30+09:00").hour == 0
        assert moment("2026-11-18").isoformat() == "2026-11-18T00:00:00+00:00"

    @override_settings(USE_TZ=False)
    def test_without_zones(self):
        expected = datetime(2026, 11, 18, 9, 30)  # noqa: DTZ001
        assert moment("2026-11-18T09:30") == expected
        assert timezone.is_naive(moment("2h"))

    @pytest.mark.parametrize("text", ["", "soon", "2 h", "999999999d", "2026-13-01"])
    def test_nonsense(self, text):
        with pytest.raises(Exception, match="is neither a moment"):
            moment(text)
