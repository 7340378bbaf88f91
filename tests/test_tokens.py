"""Tokens of the HTTP API: scopes, secrets, and what becomes of them."""

import logging
import re
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from uuid import UUID, uuid4

import pytest
from django.db import OperationalError, connection, transaction
from django.db.models import QuerySet
from django.test import RequestFactory, override_settings
from django.utils import timezone
from django.views.debug import ExceptionReporter

from robust_queue.lifecycle import tokens as lifecycle
from robust_queue.lifecycle.tokens import (
    UnknownTokenError,
    create_token,
    find_token,
    revoke_token,
    token_by_id,
    tokens,
    touch,
)
from robust_queue.models import ApiToken
from robust_queue.scopes import ScopeError, Scopes
from tests.support import rows
from tests.support.statements import statements

TOKEN = re.compile(r"rq_[0-9a-f]{32}_[A-Za-z0-9_-]{43}")


# ── Scopes ─────────────────────────────────────────────────────────────────────


def test_scopes_are_written_in_full_once_and_in_order():
    read = Scopes.read(["work", "read", "enqueue", "work:pdf", "read"])
    assert read.texts == ("enqueue:*", "read", "work:*", "work:pdf")
    assert Scopes.read(str(read)) == Scopes.kept(str(read)) == read
    assert Scopes.read([]).texts == ()


@pytest.mark.parametrize(
    ("given", "kinds"),
    [
        ("read", {"read"}),
        ("read_arguments", {"read", "read_arguments"}),
        ("operate", {"operate"}),
        ("enqueue:shop.tasks.mail", {"enqueue"}),
        ("work:mail", {"work"}),
        ("", set()),
    ],
)
def test_a_scope_implies_no_other(given, kinds):
    names = {"enqueue": "shop.tasks.mail", "work": "mail"}
    scopes = Scopes.read(given)
    asked = ("read", "read_arguments", "operate", "enqueue", "work")
    assert {kind for kind in asked if scopes.allows(kind, names.get(kind, ""))} == kinds


@pytest.mark.parametrize(
    ("pattern", "allowed", "refused"),
    [
        ("mail", ["mail"], ["mail2", "Mail", "mai", "", "*", "mail*"]),
        ("mail*", ["mail", "mail2", "mail*", "mail-b*"], ["mai", "*", "m*", ""]),
        ("*", ["mail", "*", "m*", ""], []),
    ],
)
@pytest.mark.parametrize("kind", ["enqueue", "work"])
def test_names_match_exactly_or_by_prefix(kind, pattern, allowed, refused):
    scopes = Scopes.read([f"{kind}:{pattern}"])
    assert scopes.patterns(kind) == (pattern,)
    assert [name for name in allowed if not scopes.allows(kind, name)] == []
    assert [name for name in refused if scopes.allows(kind, name)] == []


def test_a_name_may_have_colons():
    assert Scopes.read(["work:eu:mail"]).allows("work", "eu:mail")


@pytest.mark.parametrize(
    "culprit",
    [
        *("", "admin", "Read", "read:jobs", "operate:", "read,operate", "work:"),
        *("work:*mail", "work:a*b", "work:**", "enqueue:a b", "work:a\tb", "work:a\0"),
        *("work:\u202e", f"work:{'x' * 256}", None, 7),
    ],
)
def test_what_is_no_scope_is_named(culprit):
    with pytest.raises(ScopeError) as refused:
        Scopes.read(["read", culprit])
    assert repr(culprit)[:100] in str(refused.value)
    assert "read, read_arguments, operate, enqueue:TASK and work:QUEUE" in str(
        refused.value
    )


def test_nobody_asks_for_a_kind_that_there_is_not():
    with pytest.raises(ScopeError, match="'write' is no kind"):
        Scopes.read(["read"]).allows("write")


def test_scopes_of_a_later_version_allow_nothing_here():
    assert Scopes.kept("dance read work:mail work:*x").texts == ("read", "work:mail")


# ── Tokens ─────────────────────────────────────────────────────────────────────


def made(name="billing", scopes=("read",), **options):
    return create_token("default", name=name, scopes=scopes, **options)


@pytest.mark.django_db
class TestMaking:
    def test_only_a_digest_of_the_secret_is_stored(self):
        token, text = made(scopes=["work", "read"], created_by="ada")
        assert TOKEN.fullmatch(text)
        secret = text[len("rq_") + 32 + 1 :]
        stored = ApiToken.objects.values().get()
        assert stored["digest"] == sha256(secret.encode()).hexdigest()
        assert secret not in str(stored)
        assert stored["scopes"] == "read work:*"
        assert (stored["created_by"], stored["requests_per_minute"]) == ("ada", None)
        assert text.startswith(f"rq_{token.pk.hex}_")
        assert token.granted == Scopes.read(["read", "work"])

    def test_secrets_are_in_no_text_and_in_no_log(self, caplog):
        with caplog.at_level(logging.DEBUG):
            token, text = made(created_by="ada")
            find_token("default", text)
            touch("default", token)
            revoke_token("default", token.pk, by="bob")
        secret = text.rpartition(token.pk.hex)[2]
        told = [repr(token), str(token), str(vars(token)), caplog.text]
        assert not [each for each in told if secret in each]
        assert "'billing'" in caplog.text
        assert "'bob'" in caplog.text

    def test_two_are_never_alike(self):
        texts = {made()[1] for _ in range(5)}
        assert len(texts) == len({text[-43:] for text in texts}) == 5

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            ({"name": ""}, "1 to 128"),
            ({"name": "x" * 129}, "1 to 128"),
            ({"name": "a\nb"}, "control characters"),
            ({"name": " a"}, "spaces"),
            ({"scopes": ["nonsense"]}, "'nonsense' is no scope"),
            ({"requests_per_minute": 0}, "from 1 to"),
            ({"requests_per_minute": 2**31}, "from 1 to"),
            ({"expires_at": datetime(9999, 12, 31, tzinfo=UTC)}, "out of reach"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, options, problem):
        with pytest.raises(ValueError, match=problem):
            made(**options)
        assert not ApiToken.objects.exists()

    def test_a_moment_needs_its_zone(self, settings):
        with pytest.raises(ValueError, match="without a time zone"):
            made(expires_at=datetime(2030, 1, 1))  # noqa: DTZ001

    def test_long_names_of_users_are_cut(self):
        assert len(made(created_by="x" * 300)[0].created_by) == 150

    @override_settings(USE_TZ=False, TIME_ZONE="Europe/Madrid")
    def test_without_zones(self):
        soon = datetime.now(UTC) + timedelta(minutes=5)
        token, text = made(expires_at=soon)
        found = find_token("default", text)
        assert found == token
        touch("default", found)
        expiry = ApiToken.objects.get().expires_at
        here = timezone.get_default_timezone()
        assert expiry.replace(tzinfo=here) == soon
        past = datetime.now(UTC) - timedelta(minutes=5)
        assert find_token("default", made(expires_at=past)[1]) is None


@pytest.mark.django_db
class TestFinding:
    def test_by_its_text_in_one_statement(self):
        token, text = made()
        with statements() as sent:
            assert find_token("default", text) == token
        assert len(sent) == 1

    @pytest.mark.parametrize(
        "change",
        [
            {"revoked_at": datetime(2020, 1, 1, tzinfo=UTC)},
            {"expires_at": datetime(2020, 1, 1, tzinfo=UTC)},
        ],
    )
    def test_not_once_it_is_over(self, change):
        token, text = made()
        assert token_by_id("default", token.pk) == token
        ApiToken.objects.update(**change)
        assert find_token("default", text) is None
        assert token_by_id("default", token.pk) is None

    def test_until_it_expires(self):
        token, text = made(expires_at=timezone.now() + timedelta(minutes=1))
        assert find_token("default", text) == token
        assert token.state == "active"

    def test_not_with_another_secret_or_another_id(self, monkeypatch):
        compared = []

        def noting(one, another):
            compared.append((one, another))
            return one == another

        monkeypatch.setattr(lifecycle, "compare_digest", noting)
        text, other = made()[1], made()[1]
        mixed = text[:36] + other[36:]
        unknown = f"rq_{uuid4().hex}_{other[36:]}"
        for wrong in (mixed, unknown):
            with statements() as sent:
                assert find_token("default", wrong) is None
            assert len(sent) == 1
        # Whether or not there is such an id, as much is compared.
        assert [len(each) for pair in compared for each in pair] == [64] * 4

    @pytest.mark.parametrize(
        "wrong",
        [
            *(
                "",
                "rq_",
                "Bearer",
                "rq__",
                "\0",
                "rq_\0",
                "x" * 1_000_000,
                None,
                b"rq_",
            ),
            *(
                f"rq_{'0' * 32}_",
                f"rq_{'0' * 32}_{'a' * 42}",
                f"rq_{'0' * 32}{'a' * 44}",
            ),
            *(f"rq_{'0' * 32}_{'a' * 44}", f"rq_{'0' * 32}_{'a' * 43}\n"),
            *(f"rq_{'Z' * 32}_{'a' * 43}", f"RQ_{'0' * 32}_{'a' * 43}"),
            f"rq_{'٣' * 32}_{'a' * 43}",
            f"rq_{'0' * 32}_{'ä' * 43}",
        ],
    )
    def test_what_cannot_be_one_costs_nothing(self, wrong):
        with statements() as sent:
            assert find_token("default", wrong) is None
        assert not sent

    def test_reports_of_errors_do_not_have_it(self, monkeypatch):
        """Django mails and shows the variables of every frame."""
        _, text = made()

        def broken(*args):
            raise OperationalError("The database went away.")

        monkeypatch.setattr(lifecycle, "_with_id", broken)
        with pytest.raises(OperationalError) as caught:
            find_token("default", text)
        inner = caught.tb.tb_next  # this frame has it, of course
        request = RequestFactory().get("/")
        reporter = ExceptionReporter(request, caught.type, caught.value, inner)
        with override_settings(DEBUG=False):
            page = reporter.get_traceback_html()
        assert "find_token" in page
        assert text[36:] not in page


@pytest.mark.django_db
class TestTouching:
    def test_once_a_minute(self):
        token, _ = made()
        with statements() as sent:
            for _ in range(3):
                touch("default", token)
        assert len(sent.changes) == 1
        assert "last_used_at" in sent.changes[0]
        again = ApiToken.objects.get()
        assert timezone.now() - again.last_used_at < timedelta(seconds=30)
        with statements() as sent:
            touch("default", again)
        assert not sent
        for moved in (timedelta(seconds=-61), timedelta(seconds=61)):
            again.last_used_at = timezone.now() + moved
            with statements() as sent:
                touch("default", again)
            assert len(sent.changes) == 1

    def test_does_not_undo_what_somebody_else_does(self):
        token, text = made()
        revoke_token("default", token.pk)
        touch("default", token)
        assert ApiToken.objects.get().state == "revoked"
        assert find_token("default", text) is None

    def test_an_error_is_only_reported(self, monkeypatch, caplog):
        token, _ = made()

        def broken(self, **values):
            with connection.cursor() as cursor:
                cursor.execute("SELECT nonsense FROM nowhere_at_all")

        monkeypatch.setattr(QuerySet, "update", broken)
        with transaction.atomic():
            touch("default", token)
            touch("default", token)
            # The transaction of the request is none the worse.
            assert ApiToken.objects.count() == 1
        assert caplog.text.count("the last use of an API token") == 1

    def test_a_transaction_that_is_broken_by_now(self, caplog):
        token, _ = made()
        with transaction.atomic():
            transaction.set_rollback(True)
            touch("default", token)
        assert "the last use of an API token" in caplog.text


@pytest.mark.django_db
class TestRevoking:
    @pytest.mark.parametrize("how", [lambda t: t.pk, lambda t: str(t.pk), str])
    def test_by_id_or_name_for_good(self, how):
        token, text = made()
        other, _ = made(name="other")
        revoked = revoke_token("default", how(token), by="ada")
        assert (revoked, revoked.state) == (token, "revoked")
        assert find_token("default", text) is None
        again = revoke_token("default", how(token))
        assert again.revoked_at == revoked.revoked_at
        assert token_by_id("default", other.pk) == other

    @pytest.mark.parametrize("named", ["nobody", "", "\0", uuid4(), str(uuid4())])
    def test_nobody(self, named):
        made()
        with pytest.raises(UnknownTokenError, match="There is no token") as refused:
            revoke_token("default", named)
        assert isinstance(refused.value, LookupError)

    def test_a_name_that_several_have_is_no_name(self):
        first, second = made()[0], made()[0]
        with pytest.raises(UnknownTokenError, match="Several") as refused:
            revoke_token("default", "billing")
        assert str(first.pk) in str(refused.value)
        assert "Give the id" in str(refused.value)
        revoke_token("default", first.pk)
        assert revoke_token("default", "billing") == second
        assert revoke_token("default", "billing").state == "revoked"

    def test_a_name_may_look_like_an_id(self):
        name = str(uuid4())
        token, _ = made(name=name)
        assert revoke_token("default", name) == token


@pytest.mark.django_db
def test_all_are_listed_by_name():
    over = made(name="b", expires_at=timezone.now() - timedelta(days=1))[0]
    gone = rows.api_token(name="c", revoked_at=timezone.now())
    first = made(name="a")[0]
    assert tokens("default") == [first, over, gone]
    assert [each.state for each in tokens("default")] == [
        "active",
        "expired",
        "revoked",
    ]


@pytest.mark.django_db(databases=["default", "other"])
def test_a_token_is_one_of_its_database():
    token, text = create_token("other", name="there", scopes=["read"])
    assert find_token("other", text) == token
    assert find_token("default", text) is None
    assert not tokens("default")
    touch("other", token)
    revoke_token("other", "there")
    assert find_token("other", text) is None
    assert isinstance(token.pk, UUID)
