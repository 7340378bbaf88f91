"""Tokens of the HTTP API are made in the admin, shown once, and revoked."""

import re
from datetime import timedelta

import pytest
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.sessions.models import Session
from django.urls import reverse
from django.utils import timezone

from robust_queue.admin.token_form import COVER
from robust_queue.lifecycle.tokens import find_token
from robust_queue.models import ApiToken
from tests.support import rows

TOKEN = re.compile(r"rq_[0-9a-f]{32}_[A-Za-z0-9_-]{43}")
SCOPES = {
    "read": "read",
    "read_arguments": "read_arguments",
    "operate": "operate",
    "enqueue": "enqueue:shop.tasks.mail",
    "work": "work:pdf*",
}


def address(page, *args):
    return reverse(f"admin:robust_queue_apitoken_{page}", args=args)


def filled(**given):
    return {"name": "billing", "scopes": "read", **given}


def add(browser, **given):
    return browser.post(address("add"), filled(**given))


def errors(response):
    assert response.status_code == 200
    return dict(response.context["adminform"].form.errors)


def shown_in(response):
    return set(TOKEN.findall(response.content.decode()))


class TestMaking:
    def test_is_shown_once_and_stored_nowhere(self, as_superuser):
        answer = add(as_superuser, scopes="work:pdf\r\nread\r\nwork:pdf")
        assert answer.status_code == 200
        assert "no-store" in answer.headers["Cache-Control"]
        (text,) = shown_in(answer)
        token = ApiToken.objects.get()
        assert find_token("default", text) == token
        assert token.scopes == "read work:pdf"
        assert (token.created_by, token.expires_at) == ("root", None)
        page = address("change", token.pk)
        assert page in answer.content.decode()
        for each in (page, address("changelist"), address("history", token.pk)):
            assert not shown_in(as_superuser.get(each, follow=True))
        secret = text[-43:]
        kept = [*map(Session.get_decoded, Session.objects.all())]
        kept += [*LogEntry.objects.values(), *ApiToken.objects.values()]
        kept += [cookie.value for cookie in as_superuser.cookies.values()]
        assert secret not in str(kept)

    def test_takes_every_option(self, as_superuser):
        soon = timezone.now().replace(microsecond=0) + timedelta(days=90)
        local = timezone.localtime(soon)
        add(
            as_superuser,
            expires_at_0=f"{local:%Y-%m-%d}",
            expires_at_1=f"{local:%H:%M:%S}",
            requests_per_minute="600",
        )
        token = ApiToken.objects.get()
        assert (token.expires_at, token.requests_per_minute) == (soon, 600)

    def test_is_written_down(self, as_superuser):
        add(as_superuser)
        (entry,) = LogEntry.objects.all()
        assert (entry.action_flag, entry.object_repr) == (ADDITION, "billing")
        assert entry.object_id == str(ApiToken.objects.get().pk)

    def test_to_load_the_answer_again_makes_no_other(self, as_superuser):
        add(as_superuser)
        found = errors(add(as_superuser))
        assert found == {"name": ["There is a token of that name already."]}
        ApiToken.objects.update(revoked_at=timezone.now())
        assert shown_in(add(as_superuser))
        assert ApiToken.objects.count() == 2

    @pytest.mark.parametrize(
        ("field", "given", "problem"),
        [
            ("name", {"name": ""}, "required"),
            ("name", {"name": "x" * 129}, "at most 128"),
            ("name", {"name": "a\u202eb"}, "control characters"),
            ("scopes", {"scopes": ""}, "required"),
            ("scopes", {"scopes": " \n "}, "required"),
            ("scopes", {"scopes": "read\nadmin"}, "'admin' is no scope"),
            ("scopes", {"scopes": "work:*a"}, "a * stands at the end"),
            ("scopes", {"scopes": "work:\0"}, "Null characters"),
            (
                "expires_at",
                {"expires_at_0": "2020-01-01", "expires_at_1": "00:00"},
                "in the future",
            ),
            (
                "expires_at",
                {"expires_at_0": "9999-12-31", "expires_at_1": "23:59:59"},
                "in the future",
            ),
            ("requests_per_minute", {"requests_per_minute": "0"}, "from 1 to"),
            ("requests_per_minute", {"requests_per_minute": str(2**31)}, "from 1 to"),
            ("requests_per_minute", {"requests_per_minute": "9" * 30}, "from 1 to"),
        ],
    )
    def test_what_is_wrong_is_told_at_its_field(
        self, as_superuser, field, given, problem
    ):
        found = errors(add(as_superuser, **given))
        assert list(found) == [field]
        assert problem in found[field][0]
        assert not ApiToken.objects.exists()
        assert not LogEntry.objects.exists()

    @pytest.mark.django_db(databases=["default", "other"])
    def test_in_the_database_that_is_looked_at(self, as_superuser):
        overview = reverse("admin:robust_queue_overview_changelist")
        as_superuser.post(overview, {"database": "other"})
        (text,) = shown_in(add(as_superuser, database="other"))
        assert find_token("other", text)
        assert not ApiToken.objects.using("default").exists()
        token = ApiToken.objects.using("other").get()
        revoke = address("revoke", token.pk)
        as_superuser.post(revoke, {"database": "default"})
        assert find_token("other", text)
        as_superuser.post(revoke, {"database": "other"})
        assert find_token("other", text) is None


def test_whoever_has_made_them_is_told_and_looked_for(as_superuser):
    rows.api_token(name="hers", created_by="grace")
    rows.api_token(name="his", created_by="alan")
    every = as_superuser.get(address("changelist")).content.decode()
    assert "grace" in every
    assert "alan" in every
    found = as_superuser.get(address("changelist"), {"q": "grace"}).content.decode()
    assert ">hers<" in found
    assert ">his<" not in found


class TestWhoMayMakeOne:
    @pytest.mark.parametrize("kind", COVER)
    def test_who_may_do_the_same(self, as_staff, kind):
        browser = as_staff("add_apitoken", *COVER[kind])
        assert shown_in(add(browser, scopes=SCOPES[kind]))

    @pytest.mark.parametrize(
        ("kind", "lacking"), [(k, each) for k in COVER for each in COVER[k]]
    )
    def test_nobody_who_may_do_less(self, as_staff, kind, lacking):
        others = {each for it in COVER.values() for each in it} - {lacking}
        browser = as_staff("add_apitoken", *others)
        (problem,) = errors(add(browser, scopes=SCOPES[kind]))["scopes"]
        assert problem == (
            f"You may not hand out “{kind}”: it takes robust_queue.{lacking}."
        )
        assert not ApiToken.objects.exists()

    def test_every_scope_that_is_too_much_is_named(self, as_staff):
        browser = as_staff("add_apitoken", *COVER["read"])
        wanted = "read\nenqueue\nwork:a\nwork:b"
        found = errors(add(browser, scopes=wanted))["scopes"]
        assert [re.search("“(.+)”", each)[1] for each in found] == ["enqueue", "work"]

    def test_nobody_without_the_permission(self, as_staff):
        browser = as_staff("view_apitoken", "change_apitoken", "view_job")
        assert browser.get(address("add")).status_code == 403
        assert add(browser).status_code == 403

    def test_the_form_is_there(self, as_superuser):
        page = as_superuser.get(address("add")).content.decode()
        assert 'name="scopes"' in page
        assert "_addanother" not in page
        assert "_continue" not in page
        assert "digest" not in page


class TestRevoking:
    def test_on_its_page(self, as_staff):
        token = rows.api_token(name="billing")
        browser = as_staff("change_apitoken")
        page = browser.get(address("change", token.pk)).content.decode()
        assert address("revoke", token.pk) in page
        assert "_save" not in page
        assert token.digest not in page
        answer = browser.post(address("revoke", token.pk), follow=True)
        assert "1 token was revoked." in answer.content.decode()
        assert address("revoke", token.pk) not in answer.content.decode()
        token.refresh_from_db()
        assert token.state == "revoked"
        (entry,) = LogEntry.objects.all()
        assert (entry.action_flag, entry.change_message) == (CHANGE, "Revoked.")

    def test_again_changes_nothing(self, as_superuser):
        before = timezone.now() - timedelta(days=1)
        token = rows.api_token(revoked_at=before)
        answer = as_superuser.post(address("revoke", token.pk), follow=True)
        assert "It was revoked already." in answer.content.decode()
        token.refresh_from_db()
        assert token.revoked_at == before
        assert not LogEntry.objects.exists()

    def test_many_at_once(self, as_staff):
        made = [rows.api_token() for _ in range(3)]
        browser = as_staff("change_apitoken")
        ticked = [str(each.pk) for each in made[:2]]
        chosen = {"action": "revoke_selected", "_selected_action": ticked}
        browser.post(address("changelist"), {**chosen, "index": "0"})
        states = [each.state for each in ApiToken.objects.order_by("created_at")]
        assert states == ["revoked", "revoked", "active"]
        assert LogEntry.objects.count() == 2

    @pytest.mark.parametrize(
        "may", ["view_apitoken", "add_apitoken", "delete_apitoken"]
    )
    def test_nobody_without_the_permission(self, as_staff, may):
        token = rows.api_token()
        browser = as_staff(may)
        assert browser.post(address("revoke", token.pk)).status_code == 403
        token.refresh_from_db()
        assert token.state == "active"

    def test_one_that_is_not_there(self, as_superuser):
        for key in ("x", "6b0a7c11-6a3f-4c8e-9d5b-000000000000"):
            assert as_superuser.post(address("revoke", key)).status_code == 404
        assert as_superuser.get(address("revoke", "x")).status_code == 405

    def test_it_cannot_be_changed_otherwise(self, as_superuser):
        token = rows.api_token(scopes="read")
        answer = as_superuser.post(
            address("change", token.pk), filled(scopes="operate")
        )
        assert answer.status_code == 403
        token.refresh_from_db()
        assert token.scopes == "read"

    def test_deleting_takes_its_own_permission(self, as_staff):
        token = rows.api_token(name="billing")
        browser = as_staff("delete_apitoken", "view_apitoken")
        browser.post(address("delete", token.pk), {"post": "yes"})
        assert not ApiToken.objects.exists()
        (entry,) = LogEntry.objects.all()
        assert (entry.action_flag, entry.object_repr) == (DELETION, "billing")

    def test_nobody_deletes_without_it(self, as_staff):
        token = rows.api_token()
        browser = as_staff("change_apitoken", "add_apitoken")
        answer = browser.post(address("delete", token.pk), {"post": "yes"})
        assert answer.status_code == 403
        assert ApiToken.objects.exists()


def test_nothing_is_done_where_the_admin_is_for_reading_only(as_superuser, settings):
    settings.ROBUST_QUEUE = {"admin_read_only": True}
    token = rows.api_token()
    assert add(as_superuser).status_code == 403
    assert as_superuser.post(address("revoke", token.pk)).status_code == 403
    deletion = as_superuser.post(address("delete", token.pk), {"post": "yes"})
    assert deletion.status_code == 403
    page = as_superuser.get(address("change", token.pk)).content.decode()
    assert address("revoke", token.pk) not in page
    assert ApiToken.objects.get().state == "active"


def test_the_list_tells_all_but_the_secret(as_superuser):
    now = timezone.now()
    rows.api_token(name="a", scopes="read work:pdf", digest="d1" * 32)
    rows.api_token(name="b", expires_at=now - timedelta(days=1))
    rows.api_token(name="c", revoked_at=now)
    page = as_superuser.get(address("changelist")).content.decode()
    assert all(f">{state}<" in page for state in ("active", "expired", "revoked"))
    assert "<li>work:pdf</li>" in page
    assert "d1" * 32 not in page
    index = as_superuser.get(reverse("admin:index")).content.decode()
    assert address("changelist") in index
