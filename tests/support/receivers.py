"""Signals whose receivers are as before when a test is over."""

from contextlib import ExitStack, contextmanager

from robust_queue import signals as our_signals
from robust_queue.compat import signal_modules

OURS = (
    our_signals.process_started,
    our_signals.process_stopping,
    our_signals.process_exited,
    our_signals.process_replaced,
    our_signals.queue_paused,
    our_signals.queue_resumed,
    our_signals.attempt_failed,
    our_signals.attempt_snoozed,
)


@contextmanager
def receivers_kept(*signals):
    """Whatever is connected or disconnected in this block is forgotten behind it."""
    before = [(signal, list(signal.receivers)) for signal in signals]
    try:
        yield
    finally:
        for signal, receivers in before:
            signal.receivers[:] = receivers


@contextmanager
def connected(signal, receiver, **options):
    """The receiver is connected in this block."""
    signal.connect(receiver, weak=False, **options)
    try:
        yield
    finally:
        signal.disconnect(receiver)


@contextmanager
def frameworks_kept():
    """The same for what Django and the backport send."""
    with ExitStack() as stack:
        for module in signal_modules(for_backport=True):
            every = (module.task_enqueued, module.task_started, module.task_finished)
            stack.enter_context(receivers_kept(*every))
        yield
