"""What is redacted by key: which keys, and at what depth."""

import time

import pytest

from robust_queue.arguments import dump_result, plain_result
from robust_queue.lifecycle.redact import redacted_value
from robust_queue.redaction import (
    PLACEHOLDER,
    SENSITIVE_KEYS,
    is_sensitive,
    redacted,
)
from tests.testapp.secretive_tasks import Login


class TestKeys:
    @pytest.mark.parametrize(
        "key",
        [
            *SENSITIVE_KEYS,
            "PASSWORD",
            "passwords",
            "password1",
            "userPassword",
            "user_password_old",
            "UserPASSWORD",
            "Pass-Word",
            "api-key",
            "apikey",
            "APIKey",
            "X-Api-Key",
            "x_apiKeys",
            "X-Auth-Token",
            "oauth2_token",
            "Set-Cookie",
            "session_id",
            "HTTP_AUTHORIZATION",
            "credentials",
            "aws.secret.access.key",
            "\N{FULLWIDTH LATIN SMALL LETTER P}assword",
            "card number",
        ],
    )
    def test_are_known_by_their_words(self, key):
        assert is_sensitive(key, SENSITIVE_KEYS)

    @pytest.mark.parametrize(
        "key",
        [
            "author",
            "authority",
            "tokenizer",
            "tokenize",
            "secretary",
            "obsession",
            "sessional",
            "discard",
            "number",
            "card",
            "key",
            "keyword",
            "passenger",
            "api",
            "assn",
            "user",
            "",
            "-",
            "$type",
        ],
    )
    def test_are_not_found_inside_other_words(self, key):
        assert not is_sensitive(key, SENSITIVE_KEYS)

    def test_may_be_of_any_language(self):
        assert is_sensitive("laContraseña", ["contraseña"])
        assert is_sensitive("CONTRASEN\u0303A", ["contraseña"])

    def test_that_have_a_meaning_in_patterns_are_taken_as_they_are(self):
        assert is_sensitive("c++", ["C"])
        assert not is_sensitive("abc", [".*b.*"])

    def test_without_any_nothing_is_redacted(self):
        assert not is_sensitive("password", [])
        assert redacted({"password": "s3cret"}, []) == {"password": "s3cret"}

    def test_that_are_very_long_take_no_time(self):
        begun = time.perf_counter()
        redacted({"passwor_" * 100_000: 1, "P" * 500_000: 2}, SENSITIVE_KEYS)
        assert time.perf_counter() - begun < 10


class TestValues:
    def test_are_found_at_every_depth(self):
        value = {"a": [{"b": {"token": "s3cret", "c": 1}}], "secret": {"d": [2]}}
        assert redacted(value, SENSITIVE_KEYS) == {
            "a": [{"b": {"token": PLACEHOLDER, "c": 1}}],
            "secret": PLACEHOLDER,
        }
        assert value["secret"] == {"d": [2]}

    @pytest.mark.parametrize("value", [None, True, False])
    def test_that_tell_nothing_are_shown(self, value):
        assert redacted({"password": value}, SENSITIVE_KEYS) == {"password": value}

    @pytest.mark.parametrize("value", ["", "s3cret", 0, 1234, 1.5, [], {}])
    def test_all_others_look_alike(self, value):
        assert redacted({"pwd": value}, SENSITIVE_KEYS) == {"pwd": PLACEHOLDER}

    def test_pairs_count_as_key_and_value(self):
        headers = [["Accept", "*"], ["Authorization", "Bearer s3cret"]]
        assert redacted(headers, SENSITIVE_KEYS) == [
            ["Accept", "*"],
            ["Authorization", PLACEHOLDER],
        ]
        fields = ["password", "token", "name"]
        assert redacted(fields, SENSITIVE_KEYS) == fields

    def test_tagged_values_are_redacted_as_they_are_shown(self):
        stored = dump_result(
            [Login("ada", "s3cret"), ({"token": b"s3cret"},), {7: {"pwd": "s3cret"}}]
        )
        assert redacted_value(plain_result(stored)) == [
            {"user": "ada", "password": PLACEHOLDER},
            [{"token": PLACEHOLDER}],
            {"7": {"pwd": PLACEHOLDER}},
        ]

    def test_tags_that_only_a_later_version_knows_have_keys_as_well(self):
        stored = '{"$type":"later","fields":{"password":"s3cret","a":1}}'
        assert redacted_value(plain_result(stored)) == {
            "$type": "later",
            "fields": {"password": PLACEHOLDER, "a": 1},
        }
