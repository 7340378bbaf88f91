"""Calls as everybody may see them: by keyword, by parameter, by a function."""

import logging

import pytest

from robust_queue.arguments import dump_call, plain_call
from robust_queue.exceptions import RedactionError
from robust_queue.lifecycle.failure import describe
from robust_queue.lifecycle.redact import is_on, is_redacted, redacted_call
from robust_queue.models import FailedExecution
from robust_queue.redaction import PLACEHOLDER
from robust_queue.testing import drain
from tests.testapp.secretive_tasks import (
    Login,
    log_in,
    log_in_again,
    log_in_here,
    refuse,
    send,
    share,
)


def shown(task, *args, **kwargs):
    """What becomes of a call between an enqueue and the eyes of everybody."""
    path = getattr(task, "module_path", task)
    return redacted_call(path, *plain_call(dump_call(args, kwargs)))


class TestCalls:
    def test_by_keyword(self):
        assert shown(log_in, user="ada", password="s3cret") == (  # noqa: S106
            [],
            {"user": "ada", "password": PLACEHOLDER},
        )

    @pytest.mark.parametrize("task", [log_in, log_in_here, log_in_again])
    def test_by_the_name_of_the_parameter(self, task):
        assert shown(task, "ada", "s3cret") == (["ada", PLACEHOLDER], {})

    def test_parameters_that_take_the_rest_name_all_of_it(self):
        assert shown(share, "ada", "a", "b") == (["ada", PLACEHOLDER, PLACEHOLDER], {})

    def test_what_has_an_innocent_name_is_searched(self):
        given = {"url": "/", "cookies": {"a": 1}, "form": [Login("ada", "s3cret")]}
        assert shown(send, given, accept="*", x_token="s3cret") == (  # noqa: S106
            [
                {
                    "url": "/",
                    "cookies": PLACEHOLDER,
                    "form": [{"user": "ada", "password": PLACEHOLDER}],
                }
            ],
            {"accept": "*", "x_token": PLACEHOLDER},
        )

    def test_more_arguments_than_parameters_are_still_shown(self):
        assert shown(log_in, "ada", "s3cret", "x") == (["ada", PLACEHOLDER, "x"], {})

    def test_of_a_task_that_is_gone_nobody_knows_what_is_what(self):
        assert shown("shop.tasks.gone", "ada", None, to="bob", pwd="s3cret") == (  # noqa: S106
            [PLACEHOLDER, None],
            {"to": "bob", "pwd": PLACEHOLDER},
        )

    def test_the_list_of_keys_replaces_the_default(self, settings):
        settings.ROBUST_QUEUE = {"redact": ["user"]}
        assert shown(log_in, "ada", password="open") == (  # noqa: S106
            [PLACEHOLDER],
            {"password": "open"},
        )

    def test_an_empty_list_switches_it_off(self, settings):
        settings.ROBUST_QUEUE = {"redact": []}
        assert not is_on()
        assert shown(log_in, "ada", "open") == (["ada", "open"], {})
        assert shown("shop.tasks.gone", "open") == (["open"], {})
        assert not is_redacted(log_in.module_path, "no JSON")


def without_users(task_path, args, kwargs):
    """Works in place, as a function for redaction well may."""
    args[0] = "someone"
    kwargs.setdefault("nested", {})["told"] = task_path
    return args, kwargs


def with_an_error(task_path, args, kwargs):
    raise LookupError("not found")


class TestHook:
    @pytest.mark.parametrize("said", [without_users, f"{__name__}.without_users"])
    def test_has_the_last_word_on_what_the_keys_have_left(self, settings, said):
        settings.ROBUST_QUEUE = {"redact_with": said}
        path = log_in.module_path
        assert shown(log_in, "ada", "s3cret") == (
            ["someone", PLACEHOLDER],
            {"nested": {"told": path}},
        )

    def test_that_leads_nowhere_lets_nothing_through(self, settings):
        settings.ROBUST_QUEUE = {"redact": [], "redact_with": "tests.urls.missing"}
        assert is_on()
        with pytest.raises(RedactionError):
            shown(log_in, "ada", "s3cret")

    def test_may_change_what_it_is_given(self, settings):
        settings.ROBUST_QUEUE = {"redact": [], "redact_with": without_users}
        assert is_redacted(log_in.module_path, dump_call(["ada"], {"nested": {}}))

    @pytest.mark.parametrize(
        "hook",
        [
            with_an_error,
            lambda *call: None,
            lambda *call: call,
            lambda *call: ("ab", {}),
            lambda *call: ([], []),
            lambda: None,
        ],
    )
    def test_that_fails_lets_nothing_through(self, settings, hook, caplog):
        settings.ROBUST_QUEUE = {"redact_with": hook}
        with pytest.raises(RedactionError):
            shown(log_in, "ada", "s3cret")
        assert f"redacting arguments of {log_in.module_path}" in caplog.text
        assert "s3cret" not in caplog.text
        assert is_redacted(log_in.module_path, dump_call(["ada"], {}))


class TestErrorsAndLogs:
    """They have nothing of arguments unless the task puts it there."""

    def test_tracebacks_have_no_values(self):
        given = ["ada", "s3cret"]
        with pytest.raises(LookupError) as caught:
            refuse.func(*given)
        kept = describe(caught.value)
        assert 'raise LookupError("no such user")' in kept["traceback"]
        assert "s3cret" not in str(kept)

    @pytest.mark.django_db(transaction=True)
    def test_lines_about_jobs_have_no_values(self, caplog):
        caplog.set_level(logging.DEBUG)
        result = refuse.enqueue("ada", "s3cret")
        drain()
        assert result.id in caplog.text
        assert "s3cret" not in caplog.text
        assert not [each for each in caplog.records if "s3cret" in str(vars(each))]
        failure = FailedExecution.objects.get()
        assert "s3cret" not in failure.message + failure.traceback

    @pytest.mark.parametrize(
        "call",
        [
            lambda: log_in.enqueue("ada", "s3cret", "s3cret"),
            lambda: log_in.enqueue("ada", pasword="s3cret"),  # noqa: S106
            lambda: log_in.enqueue("ada", {"password": ["s3cret", object()]}),
        ],
    )
    def test_refusals_have_no_values(self, call):
        with pytest.raises(TypeError) as refusal:
            call()
        assert "s3cret" not in str(refusal.value)


class TestIsRedacted:
    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            ('{"args":["ada"],"kwargs":{}}', False),
            ('{"args":["ada",null],"kwargs":{"remember":true}}', False),
            ('{"args":["ada","s3cret"],"kwargs":{}}', True),
            ('{"args":[],"kwargs":{"password":"s3cret"}}', True),
            ('{"args":[{"a":[{"pwd":1}]}],"kwargs":{}}', True),
            ("no JSON", True),
            ("[1]", True),
            ('{"args":' + "[" * 5000 + "]" * 5000 + ',"kwargs":{}}', True),
        ],
    )
    def test_tells_what_a_form_must_not_show(self, arguments, expected):
        assert is_redacted(log_in.module_path, arguments) is expected
