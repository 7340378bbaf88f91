"""Foresight: how many jobs to hold beyond those that run, so that nobody waits.

To take jobs costs a round trip and a commit, whether it is one or a hundred. While
tasks are tiny a worker holds as many as it will have begun a moment later; then its
threads go from one to the next and never wait for the database. While tasks are long
it holds none: others may be free for them. It goes by how many have come to their end
lately, which counts everything that matters: how long tasks take, how many run at a
time, and how much else the machine has to do.
"""

# Seconds for which there is to be work at hand.
HORIZON = 0.025
# Who is that slow to answer counts twice: once to be asked, and once to be late.
TURNAROUNDS = 2
# Tasks that take longer are long: nothing is held beyond what runs.
LONG = 0.05
# A job that waits for longer goes back; somebody else may be free for it.
STALE = 0.1
MOST = 400


class Foresight:
    """Learns from what has ended; everything is told, the time as well."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._rate = 0.0
        self._latest = 0
        self._turnaround = 0.0
        self._since = 0.0

    def resize(self, size: int) -> None:
        """So many run at a time from now on."""
        self._size = size

    def begin(self, now: float) -> None:
        """There is something to do again: the time before does not count."""
        self._since = now

    def learn(self, ended: int, *, turnaround: float, now: float) -> None:
        """So many have ended since the last time; asking took so long."""
        self._turnaround = turnaround
        elapsed = max(now - self._since, 0.001)
        if not ended:
            # At most one in all that time. When one ends, all of it counts.
            self._rate = min(self._rate, 1 / elapsed)
            return
        # It may take a few rounds to forget, lest one late answer spoil it all.
        self._rate = max(ended / elapsed, self._rate / 2)
        self._latest = ended
        self._since = now

    def forget(self) -> None:
        """What was held had to wait: begin anew, with nothing."""
        self._rate = 0.0

    @property
    def ahead(self) -> int:
        """How many to hold beyond those that run."""
        if self._rate * LONG < self._size:
            return 0
        horizon = min(max(HORIZON, TURNAROUNDS * self._turnaround), STALE)
        # Never more than twice what was done: nobody knows what comes next.
        return min(int(self._rate * horizon), 2 * self._latest, MOST)
