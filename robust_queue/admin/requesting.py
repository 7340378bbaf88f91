"""Requests for what is done to very many jobs, and who made them."""

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.contrib.admin.models import ADDITION
from django.contrib.admin.utils import quote
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from robust_queue.lifecycle import operations
from robust_queue.lifecycle.search import JobSearch
from robust_queue.models import Operation

from . import display
from .base import record
from .databases import database_of

# More jobs than these are left to dispatchers: nobody likes to wait for a page.
AT_ONCE = 500

LABELS = {
    "retry": gettext_lazy("Retry"),
    "discard": gettext_lazy("Discard"),
    "cancel": gettext_lazy("Cancel"),
    "run_now": gettext_lazy("Run now"),
    # Nothing here asks for it; somebody may have done so over the HTTP API.
    "clear": gettext_lazy("Clear"),
}


def ask_for(
    request: HttpRequest, verb: str, search: JobSearch, site: AdminSite
) -> HttpResponse:
    """Have it done, and go where it is told how far it has come."""
    name = request.user.get_username()
    database = database_of(request)
    operation = operations.request(database, verb, search, requested_by=name)
    record(request, [operation], ADDITION, f"{LABELS[verb]}: {search.discreet_words}")
    told = _("It is carried out in the background. Here it is told how far it is.")
    messages.success(request, told)
    return HttpResponseRedirect(_page(site, operation))


def _page(site: AdminSite, operation: Operation) -> str:
    name, pk = "admin:robust_queue_operation_change", quote(operation.pk)
    try:
        return reverse(name, args=[pk], current_app=site.name)
    except NoReverseMatch:
        # Of a site that shows jobs, and not what is done to them.
        return display.list_url(site, "job") or reverse("admin:index")
