"""Queues, tasks and workers, operated from code and from the command line."""

import io
import sys
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.core.management import CommandError, call_command
from django.utils import timezone

import robust_queue
from robust_queue.compat import InvalidTask
from robust_queue.exceptions import NoQueueError, TuningError
from robust_queue.lifecycle import selection
from robust_queue.lifecycle.discard import clear_queue
from robust_queue.lifecycle.pause import pause
from robust_queue.management.verbs import changing
from robust_queue.models import (
    Job,
    Pause,
    Process,
    ReadyExecution,
    TaskPause,
    Tuning,
)
from tests.support import rows
from tests.support.statements import statements
from tests.testapp.tasks import mail, note

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)
WORKER = '{"queues": ["mail", "*"], "threads": 3, "most_threads": 403}'


def fill(queue="mail"):
    """A job of every kind, of which three wait."""
    makers = (rows.ready, rows.scheduled, rows.blocked, rows.claimed)
    ready, scheduled, blocked, claimed = (
        make(rows.job(queue_name=queue)) for make in makers
    )
    return {
        "ready": ready.pk,
        "scheduled": scheduled.pk,
        "blocked": blocked.pk,
        "claimed": claimed.pk,
    }


def left():
    return set(Job.objects.values_list("pk", flat=True))


class TestAQueue:
    def test_what_it_tells(self):
        fill()
        since = timezone.now() - HOUR
        ReadyExecution.objects.update(created_at=since)
        mail = robust_queue.queue("mail")
        assert (mail.name, mail.size, mail.is_paused) == ("mail", 1, False)
        assert HOUR <= mail.latency < 2 * HOUR
        status = mail.status
        assert (status.scheduled, status.blocked, status.running) == (1, 1, 1)

    def test_an_empty_one_that_nobody_has_named(self):
        nothing = robust_queue.queue("nothing")
        assert (nothing.size, nothing.latency) == (0, timedelta(0))
        assert not nothing.is_paused
        assert nothing.paused_until is None

    def test_it_looks_when_it_is_asked_and_not_again(self):
        mail = robust_queue.queue("mail")
        with statements() as found:
            assert mail.size == 0
            assert mail.latency == timedelta(0)
        assert len(found) == 5
        fill()
        assert mail.size == 0
        mail.refresh()
        assert mail.size == 1

    def test_it_is_paused_and_resumed(self):
        mail = robust_queue.queue("mail")
        assert not mail.is_paused
        assert mail.pause(until=HOUR) is True
        assert mail.is_paused
        assert mail.paused_until == Pause.objects.get().until
        assert mail.pause() is False
        assert mail.paused_until is None
        assert mail.resume() is True
        assert not mail.is_paused
        assert mail.resume() is False

    def test_names_are_judged_as_anywhere(self):
        with pytest.raises(InvalidTask, match="a name has"):
            robust_queue.queue("mail*")

    def test_the_async_variants(self):
        async def operate():
            mail = await robust_queue.aqueue("mail")
            assert not mail.is_paused
            assert await mail.apause(until=HOUR) is True
            assert mail.is_paused, "without a query in the event loop"
            assert await mail.aresume() is True
            assert not mail.is_paused
            assert await mail.aclear() == 3
            assert mail.size == 0
            return await robust_queue.aqueues()

        fill()
        assert [each.name for each in async_to_sync(operate)()] == ["mail"]

    @pytest.mark.django_db(databases=["default", "other"])
    def test_each_database_has_its_own(self):
        assert robust_queue.queue("mail", using="other").pause() is True
        assert robust_queue.queue("mail").is_paused is False
        assert robust_queue.queue("mail", using="other").is_paused is True
        with pytest.raises(NoQueueError, match="'immediate'"):
            robust_queue.queue("mail", using="immediate")


def test_all_queues_in_five_statements():
    for n in range(5):
        fill(f"queue{n}")
    rows.scheduled(rows.job(queue_name="later"))
    pause("default", "paused", until=HOUR)
    with statements() as found:
        known = {each.name: each for each in robust_queue.queues()}
        assert [each.size for each in known.values()] == [0, 0, 1, 1, 1, 1, 1]
        assert known["paused"].is_paused
        assert known["later"].status.scheduled == 1
    assert len(found) == 5


class TestClearing:
    def test_all_that_waits_is_deleted_and_what_runs_is_not(self):
        mine, other = fill(), fill("photos")
        assert robust_queue.queue("mail").clear() == 3
        assert left() == {mine["claimed"], *other.values()}

    @pytest.mark.parametrize("states", [("ready",), ("blocked", "scheduled")])
    def test_only_some_states(self, states):
        mine = fill()
        assert robust_queue.queue("mail").clear(*states) == len(states)
        assert left() == {mine[each] for each in mine if each not in states}

    @pytest.mark.parametrize("state", ["claimed", "failed", "nonsense"])
    def test_not_what_does_not_wait(self, state):
        mine = fill()
        with pytest.raises(ValueError, match="not a state of waiting"):
            robust_queue.queue("mail").clear("ready", state)
        assert left() == set(mine.values())

    def test_in_batches_that_can_be_stopped(self, monkeypatch):
        monkeypatch.setattr(selection, "BATCH_SIZE", 2)
        for _ in range(5):
            fill()
        seen = []

        def see(tally):
            seen.append(tally.done)
            return len(seen) < 5

        assert clear_queue("default", "mail", on_progress=see) == 7
        assert seen[:3] == [2, 4, 5]
        assert Job.objects.count() == 13


class TestTasks:
    def test_by_the_task_itself_or_by_its_path(self):
        assert robust_queue.pause_task(note) is True
        assert robust_queue.pause_task(note.module_path) is False
        assert robust_queue.resume_task(note.using(priority=3)) is True
        assert not TaskPause.objects.exists()

    def test_the_async_variants(self):
        assert async_to_sync(robust_queue.apause_task)(note, until=HOUR) is True
        assert TaskPause.objects.get().until is not None
        assert async_to_sync(robust_queue.aresume_task)(note) is True


class TestWorkers:
    def test_they_are_listed_and_tuned(self):
        rows.process(metadata=WORKER)
        rows.process("Dispatcher")
        rows.process(silent_for=timedelta(days=1))
        (worker,) = robust_queue.workers()
        assert (worker.queues, worker.threads) == (("mail", "*"), 3)
        robust_queue.tune(worker, threads=5)
        robust_queue.tune(worker.name, queues=["photos"])
        async_to_sync(robust_queue.atune)(worker.id, threads=6)
        row = Tuning.objects.get()
        assert (row.threads, row.queues) == (6, "photos")
        assert async_to_sync(robust_queue.aworkers)() == [worker]

    def test_they_are_made_quiet_woken_and_stopped(self):
        chief, process = rows.process("Supervisor"), rows.process(metadata=WORKER)
        (worker,) = robust_queue.workers()

        def asked():
            return {it.pk: (it.is_quiet, it.is_to_stop) for it in Tuning.objects.all()}

        robust_queue.quiet_process(worker)
        async_to_sync(robust_queue.aquiet_process)(chief.name)
        assert asked() == {process.pk: (True, False), chief.pk: (True, False)}
        robust_queue.wake_process(worker.id)
        async_to_sync(robust_queue.awake_process)(chief.pk)
        assert asked() == {process.pk: (False, False), chief.pk: (False, False)}
        robust_queue.stop_process(worker.name)
        async_to_sync(robust_queue.astop_process)(chief.pk)
        assert asked() == {process.pk: (False, True), chief.pk: (False, True)}
        with pytest.raises(TuningError):
            robust_queue.stop_process("nobody")


# ── The command ────────────────────────────────────────────────────────────────


class Terminal(io.StringIO):
    def isatty(self):
        return True


def command(*words, out=None):
    """What the command says."""
    out = out or io.StringIO()
    call_command("robust_queue", *map(str, words), stdout=out, skip_checks=True)
    return out.getvalue()


def refused(*words):
    with pytest.raises(CommandError) as refusal:
        command(*words)
    return refusal.value


class TestTheCommand:
    def test_queues(self):
        assert "No queue has jobs" in command("queues")
        fill()
        pause("default", "photos", until=HOUR)
        pause("default", "reports")
        robust_queue.pause_task(note)
        title, first, photos, reports, task = command("queues").splitlines()
        assert title.split() == [
            *("QUEUE", "READY", "SCHEDULED", "BLOCKED"),
            *("RUNNING", "LATENCY", "PAUSED"),
        ]
        assert first.split() == ["mail", "1", "1", "1", "1", "0:00:00"]
        end = timezone.localtime(Pause.objects.get(pk="photos").until)
        assert photos.endswith(f"until {end:%Y-%m-%d %H:%M:%S}")
        assert reports.split()[-1] == "paused"
        assert task == f"Task {note.module_path} is paused."

    def test_pause_and_resume(self):
        said = command("pause", "mail", "photos", "--until", "2h")
        assert said.count(" is paused until 20") == 2
        assert Pause.objects.exclude(until=None).count() == 2
        assert "'mail' is paused until" in command("pause", "mail", "--until", "3h")
        assert command("pause", "mail") == "Queue 'mail' is already paused.\n"
        said = command("resume", "mail", "photos", "reports")
        assert said.count("already") == 1
        assert not Pause.objects.exists()

    def test_pause_and_resume_a_task(self):
        path = note.module_path
        assert command("pause", "--task", path) == f"Task {path!r} is paused.\n"
        said = command("pause", "mail", "--task", path, "--task", mail.module_path)
        assert said.count("paused") == 3
        assert TaskPause.objects.count() == 2
        assert command("resume", "--task", path) == f"Task {path!r} is open.\n"
        assert Pause.objects.count() == TaskPause.objects.count() == 1

    def test_what_makes_no_sense(self):
        for verb in ("pause", "resume"):
            assert refused(verb).returncode == 2
            assert "a name has no" in str(refused(verb, "mail*"))
        assert "in the future" in str(refused("pause", "mail", "--until", "2020-01-01"))
        assert not Pause.objects.exists()

    def test_clear_queue(self):
        mine = fill()
        assert "3 jobs of queue 'mail' would be" in command(
            "clear-queue", "mail", "--dry-run"
        )
        said = command("clear-queue", "mail", "--state", "ready")
        assert said.endswith("1 job discarded.\n")
        assert "2 jobs discarded." in command(
            "clear-queue", "mail", "--state", "pending"
        )
        assert left() == {mine["claimed"]}
        assert "0 jobs of queue 'mail'" in command("clear-queue", "mail")
        assert "a name has no" in str(refused("clear-queue", "*"))

    @pytest.mark.parametrize("answer", ["n", "y"])
    def test_clear_queue_asks_first_where_there_is_much(self, monkeypatch, answer):
        monkeypatch.setattr(changing, "LARGE", 3)
        monkeypatch.setattr(sys, "stdin", Terminal())
        monkeypatch.setattr("builtins.input", lambda question: answer)
        fill()
        if answer == "y":
            assert "3 jobs discarded" in command("clear-queue", "mail", out=Terminal())
        else:
            with pytest.raises(CommandError, match="Nothing was discarded"):
                command("clear-queue", "mail", out=Terminal())
        assert Job.objects.count() == (1 if answer == "y" else 4)

    def test_workers(self):
        assert command("workers") == "No worker is alive.\n"
        worker = rows.process(metadata=WORKER)
        rows.claimed(by=worker)
        _, line = command("workers").splitlines()
        assert line.split() == [worker.name, "web", "mail,*", "3", "1"]
        quiet = WORKER.replace("}", ', "quiet": true, "tuned": {"threads": 3}}')
        Process.objects.update(metadata=quiet, memory=84 * 1024**2)
        _, line = command("workers").splitlines()
        assert line.endswith("1  84 MB   quiet, threads")

    def test_quiet_wake_and_stop(self):
        worker, chief = rows.process(metadata=WORKER), rows.process("Supervisor")
        said = command("quiet", worker.name, chief.name)
        assert said.splitlines() == [
            f"{worker.name} is asked to be quiet.",
            f"All workers of {chief.name} are asked to be quiet.",
        ]
        assert Tuning.objects.filter(is_quiet=True).count() == 2
        assert command("wake", "--all").count("are asked to go on") == 1
        assert Tuning.objects.get(is_quiet=True).pk == worker.pk
        assert "will be replaced" in command("stop", worker.name[:12])
        assert Tuning.objects.get(is_to_stop=True).pk == worker.pk
        assert "with all that it has started" in command("stop", chief.pk)

    def test_they_ask_which_and_go_on_with_those_that_are_there(self):
        assert "No supervisor is alive" in str(refused("quiet", "--all"))
        worker = rows.process(metadata=WORKER)
        assert refused("stop").returncode == 2
        assert refused("stop", worker.name, "--all").returncode == 2
        assert "No live worker" in str(refused("quiet", "nobody", worker.name))
        assert Tuning.objects.get().is_quiet

    def test_tune(self):
        worker = rows.process(metadata=WORKER)
        said = command("tune", worker.name, "--threads", 8, "--queues", "a,b*")
        assert said == f"{worker.name} is asked to change.\n"
        row = Tuning.objects.get()
        assert (row.threads, row.queues) == (8, "a,b*")
        command("tune", "--all", "--reset")
        row.refresh_from_db()
        assert (row.threads, row.queues) == (None, "")

    def test_tune_tells_who_cannot_and_goes_on_with_the_others(self):
        small = rows.process(metadata=WORKER.replace("403", "4"))
        large = rows.process(metadata=WORKER)
        assert small.name in str(refused("tune", "--all", "--threads", 9))
        assert Tuning.objects.get().pk == large.pk

    def test_tune_asks_which(self):
        assert "No worker is alive" in str(refused("tune", "--all", "--threads", 2))
        rows.process(metadata=WORKER)
        assert refused("tune", "--threads", 2).returncode == 2
        assert refused("tune", "worker", "--all", "--threads", 2).returncode == 2
        assert "Nothing to change" in str(refused("tune", "--all"))
        assert "at least one queue" in str(refused("tune", "--all", "--queues", ","))


def test_tuning_errors_are_values_that_make_no_sense():
    assert issubclass(TuningError, ValueError)
