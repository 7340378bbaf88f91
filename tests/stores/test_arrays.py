"""Columns as arrays of PostgreSQL: whatever is in them comes back as it was."""

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from robust_queue.stores.arrays import arrays

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="only PostgreSQL has arrays"
)

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
MOMENTS = st.datetimes(timezones=st.just(UTC))


def read_back(column, kind, values):
    (array,) = arrays([column], [[value] for value in values])
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT v FROM unnest(%s::{kind}[]) AS v", [array])
        return [value for (value,) in cursor.fetchall()]


class Arrays(TestCase):
    @settings(max_examples=100, deadline=None)
    @given(st.lists(TEXT, min_size=1, max_size=20))
    def test_texts(self, values):
        assert read_back("result", "text", values) == values

    @settings(max_examples=50, deadline=None)
    @given(st.lists(st.none() | MOMENTS, min_size=1, max_size=20))
    def test_moments(self, values):
        assert read_back("run_after", "timestamptz", values) == values

    def test_whatever_looks_like_syntax(self):
        values = ["", "NULL", "null", "{}", "{a,b}", '"', "\\", '\\"', ",", " a ", "\n"]
        assert read_back("message", "text", values) == values

    def test_identifiers_numbers_and_truths(self):
        ids = [UUID(int=0), UUID(int=1), UUID(int=2**128 - 1)]
        assert read_back("job_id", "uuid", ids) == ids
        assert read_back("priority", "smallint", [-32768, 0, 7]) == [-32768, 0, 7]
        assert read_back("is_due", "boolean", [True, False]) == [True, False]

    def test_zones(self):
        moment = datetime(2026, 7, 1, 12, tzinfo=timezone(timedelta(hours=5.5)))
        assert read_back("started_at", "timestamptz", [moment]) == [moment]


def test_rows_become_columns():
    rows = [(UUID(int=1), "a", 1), (UUID(int=2), 'b"', 2)]
    assert arrays(["job_id", "result", "attempts"], rows) == [
        "{00000000000000000000000000000001,00000000000000000000000000000002}",
        '{"a","b\\""}',
        "{1,2}",
    ]


def test_no_rows_are_no_columns():
    assert arrays(["job_id", "result"], []) == []
