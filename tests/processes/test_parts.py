"""The small parts of the runtime: wake-ups, notes, patience, pidfile, exits, pool."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from robust_queue.processes import exits
from robust_queue.processes.notes import Notes, withheld
from robust_queue.processes.patience import Patience
from robust_queue.processes.pidfile import AlreadyRunningError, Pidfile
from robust_queue.processes.pool import Pool
from robust_queue.processes.wakeup import Wakeup


@pytest.fixture
def usr1():
    """A signal that nobody else uses, as it was afterwards."""
    before = signal.getsignal(signal.SIGUSR1)
    yield signal.SIGUSR1
    signal.signal(signal.SIGUSR1, before)


def seconds(action):
    begun = time.monotonic()
    action()
    return time.monotonic() - begun


class TestWakeup:
    def test_a_nap_ends_by_itself(self):
        assert 0.05 <= seconds(lambda: Wakeup().wait(0.05)) < 5

    def test_a_call_before_the_nap_is_not_lost(self):
        wakeup = Wakeup()
        wakeup.set()
        assert seconds(lambda: wakeup.wait(10)) < 5
        assert seconds(lambda: wakeup.wait(0.05)) >= 0.04, "and counts once"

    def test_another_thread_ends_the_nap(self):
        wakeup = Wakeup()
        threading.Timer(0.05, wakeup.set).start()
        assert seconds(lambda: wakeup.wait(10)) < 5

    def test_it_can_be_called_more_often_than_a_pipe_holds(self):
        wakeup = Wakeup()
        for _ in range(100_000):
            wakeup.set()
        wakeup.wait(10)
        assert seconds(lambda: wakeup.wait(0.05)) >= 0.04

    def test_the_end_of_a_lifeline_ends_the_nap(self):
        read, write = os.pipe()
        threading.Timer(0.05, os.close, [write]).start()
        assert seconds(lambda: Wakeup().wait(10, read)) < 5
        os.close(read)


class TestNotes:
    def test_a_signal_is_noted_and_wakes(self, usr1):
        wakeup = Wakeup()
        notes = Notes(wakeup)
        notes.take_of(usr1)
        os.kill(os.getpid(), usr1)
        assert seconds(lambda: wakeup.wait(10)) < 5
        assert list(notes.read()) == [usr1]
        assert list(notes.read()) == []

    def test_a_withheld_signal_comes_after_the_block(self, usr1):
        notes = Notes(Wakeup())
        notes.take_of(usr1)
        with withheld(usr1):
            # To this thread: another one would take what is meant for the process.
            signal.pthread_kill(threading.get_ident(), usr1)
            assert list(notes.read()) == []
        assert list(notes.read()) == [usr1]

    def test_what_came_before_is_read_after_the_last_note(self, usr1):
        notes = Notes(Wakeup())
        notes.take_of(usr1)
        os.kill(os.getpid(), usr1)
        notes.take_no_more()
        assert signal.getsignal(usr1) is signal.SIG_DFL
        assert list(notes.read()) == [usr1]


class TestPatience:
    def test_pauses_grow_up_to_the_longest(self):
        patience = Patience(first=0.1, longest=3)
        pauses = [patience.fail() for _ in range(50)]
        assert 0.05 <= pauses[0] <= 0.1
        assert all(1.5 <= pause <= 3 for pause in pauses[10:])

    def test_years_of_trouble_do_not_overflow(self):
        patience = Patience()
        patience._failures = 10**9
        assert patience.fail() <= 5

    def test_success_ends_it(self):
        patience = Patience(first=60, longest=60)
        patience.fail()
        assert not patience.is_over
        assert patience.left > 20
        patience.succeed()
        assert patience.is_over
        assert patience.failures == 0


class TestPidfile:
    def test_it_names_its_process_and_goes_with_it(self, tmp_path):
        path = tmp_path / "new" / "folders" / "pid"
        pidfile = Pidfile(str(path))
        pidfile.take()
        assert path.read_text() == f"{os.getpid()}\n"
        pidfile.remove()
        assert not path.exists()

    def test_a_second_one_is_refused_and_told_why(self, tmp_path):
        path = str(tmp_path / "pid")
        first = Pidfile(path)
        first.take()
        with pytest.raises(AlreadyRunningError, match=f"process {os.getpid()}"):
            Pidfile(path).take()
        first.remove()
        Pidfile(path).take()

    def test_a_stale_file_is_no_obstacle(self, tmp_path):
        path = tmp_path / "pid"
        path.write_text("1\n and more than a number")
        Pidfile(str(path)).take()
        assert path.read_text() == f"{os.getpid()}\n"

    def test_the_lock_of_a_killed_process_is_gone(self, tmp_path):
        path = tmp_path / "pid"
        code = f"""
            import os, signal
            from robust_queue.processes.pidfile import Pidfile
            Pidfile({str(path)!r}).take()
            os.kill(os.getpid(), signal.SIGKILL)
        """
        subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False)
        assert path.exists()
        Pidfile(str(path)).take()

    def test_a_child_that_lets_go_does_not_keep_the_lock(self, tmp_path):
        pidfile = Pidfile(str(tmp_path / "pid"))
        pidfile.take()
        read, write = os.pipe()
        child = os.fork()
        if not child:
            pidfile.let_go()
            os.close(write)
            os.read(read, 1)  # until the parent says so
            os._exit(0)
        with pytest.raises(AlreadyRunningError):
            Pidfile(str(tmp_path / "pid")).take()
        pidfile.remove()
        Pidfile(str(tmp_path / "pid")).take()
        os.close(write)
        os.waitpid(child, 0)
        os.close(read)

    def test_somebody_elses_file_in_its_place_is_left_alone(self, tmp_path):
        path = tmp_path / "pid"
        pidfile = Pidfile(str(path))
        pidfile.take()
        path.unlink()
        path.write_text("somebody else's")
        pidfile.remove()
        assert path.read_text() == "somebody else's"


class TestPool:
    def test_nothing_ends_a_thread(self):
        pool, done = Pool(1), threading.Event()

        def leave():
            raise SystemExit

        pool.start()
        pool.submit(leave)
        pool.submit(done.set)
        assert done.wait(5)
        pool.finish(timeout=5)

    def test_finishing_waits_for_errands(self):
        pool, done = Pool(2), []
        pool.start()
        for n in range(10):
            pool.submit(lambda n=n: (time.sleep(0.01), done.append(n)))
        pool.finish(timeout=5)
        assert sorted(done) == list(range(10))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-9, "killed by SIGKILL, out of memory?"),
        (-11, "killed by SIGSEGV, a fault in native code?"),
        (-15, "killed by SIGTERM"),
        (-40, "killed by signal 40"),
        (0, "exited with code 0"),
        (9, "exited with code 9"),
        (5, "exited with code 5 (was taken for dead and left)"),
    ],
)
def test_ends_are_told_in_words(code, words):
    assert exits.in_words(code) == words
