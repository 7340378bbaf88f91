"""The arithmetic of rates: never too many, hardly too few, whatever the clock does."""

from bisect import bisect_right
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_queue import RateLimit
from robust_queue.backoffs import LONGEST_DELAY
from robust_queue.flow.buckets import A_MOMENT, bucket_of

NOW = 1_800_000_000.0
A_LITTLE = 1e-5  # what a clock of seconds since the epoch loses

limits = st.builds(
    lambda count, seconds, burst: RateLimit(f"{count}/{seconds}s", burst=burst),
    count=st.integers(1, 500),
    seconds=st.integers(1, 120),
    burst=st.none() | st.integers(1, 50),
)
pauses = st.lists(st.floats(0, 30), min_size=1, max_size=60)


def full(limit, now=NOW):
    return bucket_of(limit, level=limit.size, counted_at=now, spread_to=0.0)


def taken(bucket, now, *, most=1000):
    """Take one by one for as long as there is any; return how many."""
    bucket = bucket_of(
        bucket.limit,
        level=bucket.level,
        counted_at=bucket.counted_at,
        spread_to=bucket.spread_to,
    )
    bucket.advance(now)
    count = 0
    while count < most and bucket.take(1):
        count += 1
    return bucket, count


class TestTokens:
    @given(limit=limits, pauses=pauses)
    def test_never_more_than_the_depth_and_the_rate_in_any_window(self, limit, pauses):
        bucket, now, begun = full(limit), NOW, []
        for pause in pauses:
            now += pause
            bucket, count = taken(bucket, now)
            assert count <= limit.size + A_LITTLE, "at once"
            begun += [now] * count
        for first in range(0, len(begun), max(len(begun) // 50, 1)):
            for moment in sorted(set(begun[first:])):
                number = bisect_right(begun, moment) - first
                most = limit.depth + limit.per_second * (moment - begun[first])
                assert number <= most + A_LITTLE

    @given(limit=limits, pauses=st.lists(st.floats(0, 0.1), min_size=1, max_size=300))
    def test_with_waiting_work_never_less_than_the_rate_minus_one(self, limit, pauses):
        # Somebody comes before the bucket could run over.
        longest = (limit.depth - 1 + 1e-9) / limit.per_second
        bucket, now, begun = full(limit), NOW, 0
        for pause in pauses:
            now += min(pause, longest)
            bucket, count = taken(bucket, now)
            begun += count
            assert begun >= limit.per_second * (now - NOW) - 1 - A_LITTLE

    @given(limit=limits, steps=st.lists(st.floats(0, 5000), min_size=1, max_size=20))
    def test_a_clock_that_is_set_back_grants_nothing(self, limit, steps):
        bucket, now = full(limit), NOW
        bucket, _ = taken(bucket, now)
        for step in steps:
            now -= step
            bucket, count = taken(bucket, now)
            assert count == 0
        bucket, count = taken(bucket, now + 1)
        assert count <= limit.per_second + 1, "and it goes on from there"

    def test_nor_does_it_keep_anybody_waiting(self):
        bucket = full(RateLimit("1/s"))
        bucket.advance(NOW - 3600)
        assert bucket.take(1)
        assert bucket.appointment(1) == pytest.approx(NOW - 3600 + 1 + A_MOMENT)

    def test_who_comes_late_does_not_make_the_next_one_too_early(self):
        bucket, begun = full(RateLimit("1/s")), 0
        for second in range(1, 101):
            bucket, count = taken(bucket, NOW + second + 0.1 * (second % 2), most=1)
            begun += count
        assert begun == 100

    def test_what_is_light_does_not_overtake_what_is_heavy(self):
        bucket = full(RateLimit("10/s"))
        assert bucket.take(8)
        assert not bucket.take(5)
        assert not bucket.take(1), "in the same round"


class TestAppointments:
    @given(limit=limits, count=st.integers(1, 200), used=st.integers(0, 50))
    def test_they_are_at_exactly_the_rate(self, limit, count, used):
        bucket = full(limit)
        for _ in range(used):
            bucket.take(1)
        told = [bucket.appointment(1) for _ in range(count)]
        distance = 1 / limit.per_second
        assert [b - a for a, b in pairwise(told)] == pytest.approx(
            [distance] * (count - 1), abs=A_LITTLE
        )

    @given(limit=limits, count=st.integers(1, 100))
    def test_who_keeps_them_finds_a_token(self, limit, count):
        bucket, _ = taken(full(limit), NOW)
        bucket._is_closed = True
        for moment in [bucket.appointment(1) for _ in range(count)]:
            bucket, begun = taken(bucket, moment, most=1)
            assert begun == 1

    def test_a_heavy_one_is_given_the_time_for_it(self):
        bucket, _ = taken(full(RateLimit("1/s", burst=5)), NOW)
        told = [bucket.appointment(weight) for weight in (1, 5, 1)]
        assert told == pytest.approx([NOW + n + A_MOMENT for n in (1, 6, 7)], abs=0.01)

    def test_they_begin_now_when_the_last_one_is_long_over(self):
        bucket = bucket_of(
            RateLimit("1/s"), level=0, counted_at=NOW, spread_to=NOW - 9999
        )
        assert bucket.appointment(1) == pytest.approx(NOW + 1 + A_MOMENT)

    @pytest.mark.parametrize("algorithm", ["token_bucket", "fixed_window"])
    def test_they_stay_within_reach(self, algorithm):
        bucket = full(RateLimit("1/366d", algorithm=algorithm))
        told = [bucket.appointment(1) for _ in range(1000)]
        furthest = NOW + LONGEST_DELAY.total_seconds()
        assert told[-1] <= bucket.spread_to + A_MOMENT <= furthest + A_MOMENT


class TestWindows:
    LIMIT = RateLimit("5/minute", algorithm="fixed_window")
    START = NOW // 60 * 60

    def test_each_has_its_count(self):
        bucket, begun = full(self.LIMIT, self.START), []
        for second in range(0, 180, 10):
            bucket, count = taken(bucket, self.START + second)
            begun.append(count)
        assert begun == [5, 0, 0, 0, 0, 0] * 3

    def test_as_many_are_told_to_come_to_each_as_it_has_room_for(self):
        bucket, _ = taken(full(self.LIMIT, self.START), self.START + 7)
        told = [bucket.appointment(1) - self.START for _ in range(12)]
        assert told == pytest.approx([60] * 5 + [120] * 5 + [180] * 2, abs=0.01)

    def test_those_find_their_tokens(self):
        bucket, _ = taken(full(self.LIMIT, self.START), self.START + 7)
        for moment in [bucket.appointment(1) for _ in range(12)]:
            bucket, count = taken(bucket, moment, most=1)
            assert count == 1

    @settings(max_examples=200)
    @given(back=st.floats(0.001, 100_000))
    def test_one_that_the_clock_comes_to_again_has_been_used_up(self, back):
        bucket, now = full(self.LIMIT, self.START + 30), self.START + 30
        bucket, count = taken(bucket, now)
        assert count == 5
        # By the true time it is still the same moment. What counts is how many begin
        # in the minute that follows, wherever the clock sees its windows.
        moments = [now - back + step for step in range(0, 60, 5)]
        begun = 0
        for moment in moments:
            bucket, count = taken(bucket, moment)
            begun += count
        assert begun <= (5 if back < 30 else 0)

    def test_nobody_waits_for_long_for_a_clock_that_was_far_ahead(self):
        bucket, _ = taken(full(self.LIMIT, self.START), self.START)
        bucket, count = taken(bucket, self.START - 1_000_000)
        assert count == 0
        bucket, count = taken(bucket, self.START - 1_000_000 + 121)
        assert count == 5
