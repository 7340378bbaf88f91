"""Whose turn it is: what every store promises of queues that are shared."""

from collections import Counter

import pytest

from robust_queue.models import Pause
from robust_queue.stores import store_for
from robust_queue.stores.rows import Selection
from tests.support.tenants import Server, a_job, put
from tests.support.threads import in_thread, uncommitted

pytestmark = pytest.mark.django_db(transaction=True)


def ids(claims):
    return [each.job_id for each in claims]


class TestPartitions:
    def test_each_has_one_job_before_anyone_has_two(self):
        put(*["big"] * 5, "a", "b", "a")
        server = Server()
        assert [server.serve() for _ in range(8)] == [
            [each] for each in ["a", "b", "big", "a", "big", "big", "big", "big"]
        ]

    def test_a_batch_is_served_in_the_same_order_as_single_jobs(self):
        put(*["big"] * 5, "a", "b", "a")
        assert Server().serve(3) == ["a", "b", "big"]

    def test_many_partitions_are_all_served_before_the_first_is_served_again(self):
        names = [f"tenant {n:03}" for n in range(50)]
        put(*names, *names)
        server = Server()
        rounds = [server.serve(7) for _ in range(15)]
        served = [each for batch in rounds for each in batch]
        assert Counter(served[:50]) == Counter(names)
        assert Counter(served) == Counter(names * 2)

    def test_more_room_than_partitions_is_shared_evenly(self):
        put(*["a"] * 20, *["b"] * 20, *["c"] * 20)
        assert Server().serve(9) == ["a", "b", "c"] * 3

    def test_what_the_poor_leave_is_taken_by_those_who_have_more(self):
        put(*["a"] * 20, "b", "c")
        assert Counter(Server().serve(12)) == {"a": 10, "b": 1, "c": 1}

    def test_what_is_left_over_goes_around(self):
        put(*["a"] * 40, *["b"] * 40)
        server = Server()
        batches = [Counter(server.serve(5)) for _ in range(4)]
        assert batches == [{"a": 3, "b": 2}, {"a": 2, "b": 3}] * 2

    def test_what_the_poor_leave_goes_around_as_well(self):
        put(*["a"] * 60, *["b"] * 60)
        server, served = Server(), Counter()
        for _ in range(4):
            put("poor", "poorer")
            served.update(server.serve(12))
        assert served["a"] == served["b"] == 20

    def test_inside_a_partition_priority_goes_before_age(self):
        late, soon = put("a", rank=5) + put("a", rank=-5)
        (later,) = put("a", rank=5)
        assert ids(Server().take(3)) == [soon, late, later]

    def test_one_partition_alone_has_all_of_the_room(self):
        expected = put(*["a"] * 30)
        server = Server()
        assert ids(server.take(20)) == expected[:20]
        assert ids(server.take(20)) == expected[20:]
        assert server.take(20) == []

    def test_the_one_served_last_may_be_gone(self):
        put("a", "m", "z")
        server = Server()
        assert server.serve(2) == ["a", "m"]
        put("b", "n")
        assert server.serve(3) == ["n", "z", "b"]

    def test_partitions_are_told_apart_by_case_and_may_have_any_letters(self):
        names = ["B", "a", "b", "ä", "日本", "%s", "'; --", "😀"]
        put(*names)
        assert sorted(Server().serve(20)) == sorted(names)


class TestWithoutPartition:
    """Jobs that were enqueued before their queue had partitions."""

    def test_they_are_one_partition_of_their_own(self):
        put(*[""] * 3)
        put(*["a"] * 3, *["b"] * 3)
        server = Server()
        assert [server.serve() for _ in range(6)] == [["a"], ["b"], [""]] * 2

    def test_they_get_their_share_of_a_batch(self):
        put(*[""] * 20)
        put(*["a"] * 20)
        assert Counter(Server().serve(10)) == {"": 5, "a": 5}

    def test_alone_they_are_served_in_order(self):
        expected = put(*[""] * 10, rank=3)
        first = put("", rank=-3)
        assert ids(Server().take(20)) == first + expected

    def test_where_nothing_is_shared_any_more_the_order_is_as_ever(self):
        expected = put("b", "", "a", "b", "a")
        server = Server(shared=())
        assert ids(server.take(3)) == expected[:3]
        assert ids(server.take(3)) == expected[3:]


class TestPauses:
    @pytest.mark.parametrize("pattern", ["imports", "imp*", "*"])
    def test_a_pause_counts(self, pattern):
        put("a", "", "b")
        server = Server(pattern)
        paused = Pause.objects.create(queue_name="imports")
        assert [server.serve(5) for _ in range(3)] == [[]] * 3
        paused.delete()
        assert sorted(server.serve(5)) == ["", "a", "b"]

    @pytest.mark.parametrize("pattern", ["imports", "imp*", "*"])
    def test_a_pause_of_another_queue_does_not(self, pattern):
        put("a")
        put("", queue="other")
        Pause.objects.create(queue_name="other")
        server = Server(pattern)
        assert server.serve(5) + server.serve(5) == ["a"]


class TestPatterns:
    def queues(self, server, limit=1):
        return [each.queue_name for each in server.take(limit)]

    @pytest.mark.parametrize("pattern", ["*", "imports*"])
    def test_each_queue_that_is_shared_and_all_others_take_turns(self, pattern):
        put(*["a"] * 10)
        put(*["a"] * 10, queue="imports_b")
        put(*[""] * 10, queue="imports_x")
        server = Server(pattern, shared=("imports", "imports_b"))
        served = [self.queues(server) for _ in range(6)]
        assert served == [["imports_x"], ["imports"], ["imports_b"]] * 2

    def test_who_goes_first_takes_what_there_is_and_the_others_the_rest(self):
        put(*["a"] * 4)
        put(*[""] * 2, queue="other")
        server = Server("*")
        assert self.queues(server, 3) == ["other", "other", "imports"]
        assert self.queues(server, 9) == ["imports"] * 3
        assert self.queues(server, 9) == []

    def test_partitions_take_turns_under_a_pattern(self):
        put(*["big"] * 10, "a", "b")
        server = Server("*")
        assert [server.serve() for _ in range(4)] == [["a"], ["b"], ["big"], ["big"]]

    def test_all_other_queues_have_one_order_as_ever(self):
        put(*["a"] * 5)
        (third,) = put("", queue="a", rank=1)
        (first,) = put("", queue="z", rank=-1)
        (second,) = put("", queue="m")
        (fourth,) = put("", queue="a", rank=1)
        assert ids(Server("*").take(2)) == [first, second]
        assert ids(Server("*").take(2)) == [third, fourth]

    def test_a_prefix_serves_the_others_by_name_as_ever(self):
        put(*["a"] * 5)
        (late,) = put("", queue="imports_z", rank=-1)
        (soon,) = put("", queue="imports_b")
        assert ids(Server("imports*").take(2)) == [soon, late]

    def test_no_job_is_taken_twice_by_patterns_that_overlap(self):
        put(*["a"] * 3, *["b"] * 3, "")
        put(*[""] * 3, queue="other")
        server = Server("imports", "other", "imp*", "*")
        assert len(set(ids(server.take(50)))) == 10
        assert server.take(50) == []

    def test_the_order_of_a_list_is_kept(self):
        put(*["a"] * 3)
        put(*[""] * 3, queue="other")
        server = Server("other", "imports")
        assert self.queues(server, 2) == ["other", "other"]
        assert self.queues(server, 2) == ["other", "imports"]


def test_outcomes_and_claims_are_traded_where_turns_are_taken():
    from tests.support.outcomes import success

    put("a", "a", "b")
    server = Server()
    done = server.take(1)
    selection = Selection(("imports",), partitioned={"imports": "a"})
    facts = {"process_id": done[0].process_id, "token": done[0].token}
    held, claims = store_for("default").exchange(
        [success(each) for each in done],
        selection,
        limit=2,
        now=done[0].enqueued_at,
        **facts,
    )
    assert held == set(ids(done))
    assert [each.partition_key for each in claims] == ["b", "a"]


@pytest.mark.usefixtures("row_locks")
class TestTwoAtOnce:
    def test_jobs_that_another_holds_are_passed_over(self):
        put(*["a"] * 3, "b", "c")
        with uncommitted(Server().serve, 2) as held:
            assert held == ["a", "b"]
            assert Counter(Server().serve(10)) == {"a": 2, "c": 1}

    def test_partitions_that_another_holds_whole_are_passed_over(self):
        put(*[f"tenant {n}" for n in range(8)])
        with uncommitted(Server().serve, 3) as held:
            found = Server().serve(3)
        assert len(held + found) == len({*held, *found}) == 6

    @pytest.mark.parametrize("pattern", ["imports", "imp*", "*"])
    def test_no_more_is_locked_than_is_taken(self, pattern):
        put(*[""] * 3)
        put(*["a"] * 4, *["b"] * 2, "c", "d")
        put(*[""] * 4, queue="impulse")
        with uncommitted(Server(pattern).serve, 6) as held:
            assert len(held) == 6
            rest = in_thread(Server(pattern, "*").serve, 50)
            assert len(rest) == 15 - 6


def test_a_job_says_whose_it_is():
    job = a_job("ada")
    store_for("default").insert([job])
    (claim,) = Server(shared=()).take()
    assert claim.partition_key == "ada"
