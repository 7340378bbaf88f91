"""Errors that nobody else would hear of reach somebody."""

import logging
import sys
import traceback

import pytest

import robust_queue
from robust_queue.reports import report


def fail():
    raise ValueError("no such order")


def an_error():
    try:
        fail()
    except ValueError as error:
        return error


heard = []


def hear(error):
    heard.append((error, sys.exception()))


def refuse(error):
    raise SystemExit("no time")


@pytest.fixture(autouse=True)
def nothing_heard():
    heard.clear()


def test_by_default_it_is_logged_with_its_traceback(caplog):
    report(an_error(), "sweeping the floor")
    (line,) = caplog.records
    assert line.getMessage() == "Something went wrong while sweeping the floor."
    assert "in fail" in logging.Formatter().format(line)


@pytest.mark.parametrize("handler", [hear, f"{__name__}.hear"])
def test_a_handler_is_told_instead_while_the_error_is_in_flight(
    settings, caplog, handler
):
    settings.ROBUST_QUEUE = {"on_thread_error": handler}
    error = an_error()
    report(error, "sweeping the floor")
    assert heard == [(error, error)]
    assert caplog.records == []


def test_it_is_in_flight_once_if_it_is_caught_just_now(settings):
    settings.ROBUST_QUEUE = {"on_thread_error": hear}
    try:
        fail()
    except ValueError as error:
        report(error, "sweeping the floor")
    [(told, in_flight)] = heard
    assert told is in_flight
    frames = [each.name for each in traceback.extract_tb(told.__traceback__)]
    assert frames == [sys._getframe().f_code.co_name, "fail"]


def test_a_handler_may_be_assigned_to_the_module(monkeypatch):
    monkeypatch.setitem(vars(robust_queue), "on_thread_error", hear)
    report(an_error(), "sweeping the floor")
    assert len(heard) == 1


@pytest.mark.parametrize(
    ("handler", "told"),
    [
        (refuse, "SystemExit: no time"),
        (lambda: None, "TypeError"),
        ("shop.errors.hear", "ModuleNotFoundError"),
        (f"{__name__}.deaf", "ImportError"),
    ],
)
def test_a_handler_that_fails_is_logged_and_so_is_the_error(
    settings, caplog, handler, told
):
    settings.ROBUST_QUEUE = {"on_thread_error": handler}
    report(an_error(), "sweeping the floor")
    of_the_handler, of_the_error = caplog.records
    assert told in logging.Formatter().format(of_the_handler)
    assert "no such order" in logging.Formatter().format(of_the_error)


def test_settings_that_make_no_sense_do_not_keep_it_back(settings, caplog):
    settings.ROBUST_QUEUE = {"workers": 3}
    report(an_error(), "sweeping the floor")
    assert "no such order" in logging.Formatter().format(caplog.records[-1])


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), MemoryError()])
def test_whatever_it_is(caplog, error):
    report(error, "sweeping the floor")
    assert caplog.records[-1].exc_info[1] is error


class UntellableError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def test_it_never_raises(monkeypatch):
    def fail(*args, **kwargs):
        raise OSError("the disk is full")

    monkeypatch.setattr(logging.getLogger("robust_queue"), "error", fail)
    assert report(UntellableError(), "sweeping the floor") is None
