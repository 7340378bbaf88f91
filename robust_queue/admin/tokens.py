"""Tokens of the HTTP API: made here, shown once, and revoked."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.actions import delete_selected
from django.contrib.admin.models import CHANGE
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST

from robust_queue.lifecycle.tokens import create_token, revoke_token
from robust_queue.models import ApiToken

from . import display
from .base import ReadOnlyAdmin, record
from .databases import database_of, home_of
from .permissions import may_edit
from .token_form import TokenForm

STATES = {
    "active": _("active"),
    "expired": _("expired"),
    "revoked": _("revoked"),
}

_FORM = ["name", "scopes", "expires_at", "requests_per_minute"]
_FACTS = [
    *("shown_name", "shown_scopes", "shown_state", "created_at", "shown_maker"),
    *("expires_at", "last_used_at", "revoked_at", "requests_per_minute", "id"),
]


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin):
    """Who may use the HTTP API. A token is made, and revoked; it never changes."""

    is_in_index = True
    form = TokenForm
    change_form_template = "admin/robust_queue/apitoken/change_form.html"
    list_display = [
        *("shown_name", "shown_scopes", "created_at", "shown_maker", "expires_at"),
        *("last_used_at", "shown_state"),
    ]
    id_lookups = ("pk",)
    name_lookups = ("name", "created_by")
    search_help_text = _("The id, the whole name, or who has made it.")
    ordering = ["name", "pk"]
    actions: Any = ("revoke_selected", "delete_selected")
    readonly_fields = ["shown_name", "shown_scopes", "shown_maker", "shown_state", "id"]

    # ── Who may do what ────────────────────────────────────────────────────────

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return may_edit(request, "add", self.model)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_edit(request, "delete", self.model)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return may_edit(request, "change", self.model)

    # ── Making one ─────────────────────────────────────────────────────────────

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return _FORM if obj is None else _FACTS

    def get_form(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        form: Any = super().get_form(request, *args, **kwargs)
        form.request = request
        return form

    @method_decorator(sensitive_variables("text"))
    def save_model(
        self, request: HttpRequest, obj: Any, form: Any, change: bool
    ) -> None:
        database = database_of(request)
        given = {name: form.cleaned_data[name] for name in _FORM}
        user = request.user.get_username()
        token, text = create_token(database, created_by=user, **given)
        obj.pk = token.pk
        obj.refresh_from_db(using=database)
        # As long as the request, which is as long as anybody may see it.
        obj.shown_once = text

    def response_add(self, request: HttpRequest, obj: Any, *args: Any) -> HttpResponse:
        """Show it in the answer itself: a message would be stored until it is read."""
        context = {
            **self.admin_site.each_context(request),
            **self.frame(request),
            "title": gettext("The token %s") % obj,
            "opts": self.opts,
            "media": self.media,
            "token": obj,
            "token_url": self._url("change", obj),
        }
        request.current_app = self.admin_site.name
        template = "admin/robust_queue/apitoken/shown_once.html"
        return TemplateResponse(request, template, context)

    # ── Revoking ───────────────────────────────────────────────────────────────

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.revoke_view)
        name = "robust_queue_apitoken_revoke"
        return [path("<path:object_id>/revoke/", view, name=name), *super().get_urls()]

    @method_decorator(require_POST)
    def revoke_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """End one, and show its page again."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if not self.has_revoke_permission(request):
            raise PermissionDenied
        token = self.get_object(request, unquote(object_id))
        if token is None:
            raise Http404
        back = self._url("change", token)
        if refusal := self.refusal(request, back):
            return refusal
        self._revoke(request, [token])
        return HttpResponseRedirect(back)

    @admin.action(description=_("Revoke selected tokens"), permissions=["revoke"])
    def revoke_selected(self, request: HttpRequest, rows: QuerySet[Any]) -> None:
        self._revoke(request, rows)

    @admin.action(
        description=_("Delete selected %(verbose_name_plural)s"), permissions=["delete"]
    )
    def delete_selected(
        self, request: HttpRequest, rows: QuerySet[Any]
    ) -> HttpResponse | None:
        """Django's, which asks first."""
        answer: HttpResponse | None = delete_selected(self, request, rows)
        return answer

    def _revoke(self, request: HttpRequest, tokens: Iterable[ApiToken]) -> None:
        left = [token for token in tokens if token.revoked_at is None]
        for token in left:
            by = request.user.get_username()
            revoke_token(home_of(token), token.pk, by=by)
        record(request, left, CHANGE, gettext("Revoked."))
        if not left:
            told = gettext("It was revoked already.")
            self.message_user(request, told, messages.WARNING)
            return
        told = ngettext("%d token was revoked.", "%d tokens were revoked.", len(left))
        self.message_user(request, told % len(left))

    # ── Pages ──────────────────────────────────────────────────────────────────

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any
    ) -> Any:
        token = context.get("original")
        if token is None:
            # It is to be seen first.
            context["show_save_and_add_another"] = False
            context["show_save_and_continue"] = False
        elif token.revoked_at is None and self.has_revoke_permission(request):
            context["revoke_url"] = self._url("revoke", token)
        return super().render_change_form(request, context, *args, **kwargs)

    @admin.display(description=_("name"))
    def shown_name(self, token: ApiToken) -> str:
        return display.plain(token.name)

    @admin.display(description=_("created by"), ordering="created_by")
    def shown_maker(self, token: ApiToken) -> str:
        return display.plain(token.created_by)

    @admin.display(description=_("scopes"))
    def shown_scopes(self, token: ApiToken) -> Any:
        texts = display.plain(token.scopes).split()
        return display.sentences(map(display.path, texts)) if texts else "-"

    @admin.display(description=_("state"))
    def shown_state(self, token: ApiToken) -> SafeString:
        label = STATES[token.state]
        return format_html('<span class="rqueue-badge">{}</span>', label)

    def _url(self, page: str, token: ApiToken) -> str:
        name, site = f"admin:robust_queue_apitoken_{page}", self.admin_site.name
        return reverse(name, args=[quote(token.pk)], current_app=site)
