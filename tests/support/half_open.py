"""A line to the database server that can go half-open, as behind a proxy that is gone.

Both sides still take it for connected: whatever they send is swallowed, nobody answers,
and nobody is told.
"""

from tests.support.lines import Call, Line, opened


class HalfOpenLine(Line):
    """Passes everything on, until told to swallow what its calls carry."""

    def call(self, client, server):
        return HalfOpenCall(client, server)

    def black_hole(self, having_said=b""):
        """Swallow all that the calls of now carry from now on; return how many it are.

        New calls are carried as before, and so are those that have never said this.
        """
        swallowed = [call for call in self.calls if call.is_open_after(having_said)]
        for call in swallowed:
            call.is_hole = True
        return len(swallowed)


class HalfOpenCall(Call):
    """Remembers what was said, and can become a hole."""

    def __init__(self, client, server):
        super().__init__(client, server)
        self.said, self.swallowed = bytearray(), bytearray()
        self._is_over = False
        self.is_hole = False

    def is_open_after(self, said):
        """Is it still carried, and was this asked for on it?"""
        return not (self._is_over or self.is_hole) and said in self.said

    def request(self, data):
        self.said += data
        if not self._swallows(data):
            super().request(data)

    def reply(self, data):
        if not self._swallows(data):
            super().reply(data)

    def end(self):
        # The other side of a hole does not hear about it either.
        if not self.is_hole:
            self._is_over = True
            super().end()

    def _swallows(self, data):
        if self.is_hole:
            self.swallowed += data
        return self.is_hole


def half_open_line():
    """A line for the block."""
    return opened(HalfOpenLine)
