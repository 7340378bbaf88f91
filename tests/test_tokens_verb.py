"""``manage.py robust_queue tokens``: listing, creating and revoking."""

import json
from datetime import timedelta
from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from robust_queue.lifecycle.tokens import find_token
from robust_queue.management.verbs import tokens as verb
from robust_queue.models import ApiToken
from tests.support import rows

pytestmark = pytest.mark.django_db


def run(*words):
    out = StringIO()
    words = ("robust_queue", "tokens", *map(str, words))
    call_command(*words, stdout=out, skip_checks=True)
    return out.getvalue()


@pytest.mark.parametrize(
    "words",
    [
        ["create", "--scope", "read", "a", "--json"],
        ["--json", "create", "--scope", "read", "a"],
        ["create", "--json", "a", "--scope", "read"],
    ],
)
def test_options_stand_where_people_put_them(words):
    made = json.loads(run(*words))
    assert (made["name"], made["scopes"]) == ("a", ["read"])
    assert len(json.loads(run("list", "--json"))) == 1


def test_one_is_revoked_by_its_text_which_is_told_nowhere(caplog):
    text = run("create", "a", "--scope", "read").splitlines()[-1]
    said = run("revoke", text)
    assert ApiToken.objects.get().state == "revoked"
    unknown = f"rq_{uuid4().hex}_{'A' * 43}"
    with pytest.raises(CommandError, match="There is no token") as refused:
        run("revoke", unknown)
    for each in (text, unknown):
        secret = each.split("_", 2)[2]
        assert secret not in said + str(refused.value) + caplog.text


def test_there_are_none():
    assert run() == "There are no tokens.\n"


def test_the_list():
    now = timezone.now()
    rows.api_token(name="b", revoked_at=now, scopes="operate")
    first = rows.api_token(name="a", scopes="read work:pdf", last_used_at=now)
    titles, one, two = run("list").splitlines()
    expected = ["NAME", "ID", "STATE", "SCOPES", "CREATED", "BY", "EXPIRES", "LAST"]
    assert titles.split()[:8] == expected
    for words in ("a  ", str(first.pk), "active", "read work:pdf", "ada", "never"):
        assert words in one
    assert two.startswith("b")
    assert "revoked" in two
    assert first.digest not in run()


def test_as_json():
    token = rows.api_token(scopes="read work:pdf", requests_per_minute=60)
    (found,) = json.loads(run("--json"))
    assert found["id"] == str(token.pk)
    assert found["scopes"] == ["read", "work:pdf"]
    assert (found["state"], found["requests_per_minute"]) == ("active", 60)
    assert "digest" not in found


def test_one_is_created_and_shown_once(monkeypatch):
    monkeypatch.setattr(verb.getpass, "getuser", lambda: "ada")
    words = ["--scope", "work:pdf", "--scope", "read", "--expires", "90d"]
    said, warning, text = run(
        "create", "pdf maker", *words, "--requests-per-minute", 600
    ).splitlines()
    token = ApiToken.objects.get()
    assert said.startswith(f"pdf maker ({token.pk}) may: read work:pdf, until 2")
    assert "shown this once" in warning
    assert find_token("default", text) == token
    left = token.expires_at - timezone.now()
    assert timedelta(days=89, hours=23) < left < timedelta(days=90)
    assert (token.requests_per_minute, token.created_by) == (600, "ada")
    assert text not in run()
    assert text not in run("--json")


def test_nobody_has_a_name(monkeypatch):
    def nameless():
        raise KeyError("uid 1000")

    monkeypatch.setattr(verb.getpass, "getuser", nameless)
    made = json.loads(run("create", "a", "--scope", "read", "--json"))
    token = find_token("default", made["token"])
    assert (str(token.pk), token.created_by) == (made["id"], "")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["create"], "arguments are required: NAME, --scope"),
        (["revoke"], "arguments are required: TOKEN"),
        (["list", "a"], "unrecognized arguments: a"),
        (["create", "a"], "arguments are required: --scope"),
        (["create", "a", "b", "--scope", "read"], "unrecognized arguments: b"),
        (["create", "a", "--scope", "nonsense"], "'nonsense' is no scope"),
        (["create", "x" * 129, "--scope", "read"], "1 to 128"),
        (["create", "a", "--scope", "read", "--expires", "0s"], "in the future"),
        (["create", "a", "--scope", "read", "--expires", "soon"], "no duration"),
        *(
            (["create", "a", "--scope", "read", "--requests-per-minute", n], "from 1")
            for n in ("0", "-5", "many", "9" * 20)
        ),
    ],
)
def test_what_makes_no_sense(words, problem):
    with pytest.raises(CommandError, match=problem) as refused:
        run(*words)
    assert refused.value.returncode in {1, 2}
    assert not ApiToken.objects.exists()


def test_some_are_revoked():
    one, two, three = (rows.api_token(name=name) for name in "abc")
    done = run("revoke", "a", two.pk)
    assert done == f"a ({one.pk}) is revoked.\nb ({two.pk}) is revoked.\n"
    found = {token.name: token.state for token in ApiToken.objects.all()}
    assert found == {"a": "revoked", "b": "revoked", "c": "active"}
    with pytest.raises(CommandError, match="There is no token") as refused:
        run("revoke", "nobody", uuid4(), "c")
    assert str(refused.value).count("There is no token") == 2
    three.refresh_from_db()
    assert three.state == "revoked"


@pytest.mark.django_db(databases=["default", "other"])
def test_in_another_database():
    out = StringIO()
    words = ["--database", "other", "tokens", "create", "a", "--scope", "read"]
    call_command("robust_queue", *words, stdout=out, skip_checks=True)
    assert find_token("other", out.getvalue().splitlines()[-1]) is not None
    assert not ApiToken.objects.using("default").exists()
