"""Small pieces of the demonstration; all of it together is run by ``test_docs``."""

import socket
import time

import pytest

from example_project.shop import made_up, tour, web
from robust_queue.lifecycle.statistics import PERIODS, history

LIST = """<table><thead><tr><th></th></tr></thead>
<tbody><tr class="row1"><th><a href="/a/job/7/change/">7</a></th></tr>
<tr><td><a href="/a/job/8/change/">8</a></td></tr></tbody></table>"""


@pytest.mark.django_db
@pytest.mark.parametrize("period", PERIODS)
def test_the_history_that_is_made_up_fills_every_chart(period):
    made_up.write_history("default")
    told = history("default", period)
    assert told.total.finished > 1000
    assert told.total.failed > 0
    assert None not in (told.total.wait_p95, told.total.run_p95, told.total.depth)


@pytest.mark.django_db
def test_the_history_that_is_made_up_has_no_gap():
    now = time.time()
    made_up.write_history("default", now)
    *past, present = history("default", "hour", now=now).points
    assert all(point.finished for point in past)
    assert present.finished == 0


def test_rows_are_counted_without_headings():
    assert tour.number_in(LIST, "rows") == 2
    assert tour.number_in("<table><tbody></tbody></table>", "rows") == 0


def test_a_chart_of_nothing_is_not_counted():
    drawn = '<path class="rqueue-series-1" d="M0 1"/>'
    assert tour.number_in(drawn, "curves") == 1
    assert tour.number_in(drawn.replace("M0 1", ""), "curves") == 0


def test_the_first_row_of_a_list_is_found_by_its_address():
    assert tour.first_row_in(LIST, "/a/job/") == "/a/job/7/change/"
    assert tour.first_row_in(LIST, "/a/queue/") is None


def test_another_port_is_chosen_if_somebody_has_the_usual_one(monkeypatch):
    with socket.create_server((web.HOST, 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(web, "USUAL_PORT", port)
        assert web.free_port() not in (0, port)
    assert web.free_port() == port
