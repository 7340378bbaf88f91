"""The buttons on the page of a job. Each asks again whether it may be pressed."""

from typing import Any

from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, URLPattern, path, reverse
from django.utils.translation import gettext as _

from robust_queue.lifecycle.search_conditions import id_in
from robust_queue.lifecycle.selection import ENDED
from robust_queue.models import Job

from . import display
from .base import ReadOnlyAdmin
from .databases import database_of
from .job_deeds import DEEDS, do_and_tell, may, verbs_for
from .permissions import may_rerun
from .requesting import LABELS


class JobPageAdmin(ReadOnlyAdmin):
    """Jobs to each of which something can be done on its page."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.do_view)
        own = path("<path:object_id>/do/<str:verb>/", view, name="robust_queue_job_do")
        return [own, *super().get_urls()]

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any
    ) -> Any:
        job = context.get("original")
        if job is not None:
            context |= {
                "buttons": [*self._buttons(request, job)],
                "rerun_url": self._rerun_url(request, job),
            }
        return super().render_change_form(request, context, *args, **kwargs)

    def do_view(self, request: HttpRequest, object_id: str, verb: str) -> HttpResponse:
        """Do it, to this job alone. One that is to be discarded is asked about."""
        if verb not in DEEDS:
            raise BadRequest("There is no such verb.")
        if not self.has_view_permission(request) or not may(request, verb):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        job_id = id_in(unquote(object_id))
        if job_id is None:
            raise Http404
        # One that is gone by now is told to be.
        job = self.get_object(request, str(job_id)) or Job(id=job_id)
        if verb == "discard" and "confirmed" not in request.POST:
            return self._question(request, job)
        do_and_tell(request, database_of(request), verb, [job])
        return HttpResponseRedirect(self._next(request, job))

    def _question(self, request: HttpRequest, job: Job) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            **self.frame(request),
            "title": _("Discard this job for good?"),
            "opts": self.opts,
            "media": self.media,
            "job": job,
            "task": display.path(job.task_path),
            "back": self._url("change", job.pk),
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "admin/robust_queue/job/discard.html", context)

    def _next(self, request: HttpRequest, job: Job) -> str:
        """The page of the job, or the list if it is gone."""
        rows = Job.objects.using(database_of(request)).filter(pk=job.pk)
        if rows.exists():
            return self._url("change", job.pk)
        return display.list_url(self.admin_site, "job")

    def _buttons(self, request: HttpRequest, job: Job) -> Any:
        # One that nobody knows where to find has no buttons.
        for verb in verbs_for(request, job.state):
            yield LABELS[verb], self._url("do", job.pk, verb)

    def _rerun_url(self, request: HttpRequest, job: Job) -> str:
        replaces = job.state == "failed"
        if job.state not in ENDED or not may_rerun(request, replaces=replaces):
            return ""
        name = f"admin:robust_queue_{job.state}execution_rerun"
        try:
            site = self.admin_site.name
            return reverse(name, args=[quote(job.pk)], current_app=site)
        except NoReverseMatch:
            return ""  # a site without that page

    def _url(self, page: str, pk: Any, *more: str) -> str:
        name, site = f"admin:robust_queue_job_{page}", self.admin_site.name
        return reverse(name, args=[quote(pk), *more], current_app=site)
