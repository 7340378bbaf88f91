"""Edit and re-run: the form that makes another job of one that has ended."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin.models import ADDITION, DELETION
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from robust_queue.compat import AnyResult
from robust_queue.lifecycle.names import QUEUE_NAME_LENGTH
from robust_queue.lifecycle.rerun import REFUSALS, rerun
from robust_queue.models import Job

from . import redaction
from .arguments import ArgumentsField, editable
from .base import JobRowAdmin, record
from .databases import home_of
from .permissions import may_look, may_rerun


class RerunForm(forms.Form):
    """What may be changed of a job."""

    arguments = ArgumentsField()
    queue_name = forms.CharField(
        label=gettext_lazy("Queue"), max_length=QUEUE_NAME_LENGTH
    )
    priority = forms.IntegerField(label=gettext_lazy("Priority"))


class RerunnableAdmin(JobRowAdmin):
    """Rows of jobs that can be run as new ones."""

    # Does the new job take the place of the old one, or is it there as well?
    replaces = True

    def has_rerun_permission(self, request: HttpRequest) -> bool:
        return may_rerun(request, replaces=self.replaces)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.rerun_view)
        own = path("<path:object_id>/rerun/", view, name=self._rerun_name)
        return [own, *super().get_urls()]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        extra = dict(extra_context or {})
        if self.has_rerun_permission(request):
            extra["rerun_url"] = self._url(self._rerun_name, unquote(object_id))
        return super().change_view(request, object_id, form_url, extra)

    def rerun_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the form, or do what it says."""
        may_see = self.has_view_permission(request) or may_look(request, Job)
        if not may_see or not self.has_rerun_permission(request):
            raise PermissionDenied
        if refusal := self.refusal(request):
            return refusal
        row: Any = self.get_object(request, unquote(object_id))
        if row is None:
            raise Http404
        if redaction.is_closed(request, row.job):
            return self._refused(request, row)
        form = RerunForm(request.POST or None, initial=_initial(row.job))
        result = self._rerun(row.job, form) if form.is_valid() else None
        if result is None:
            return self._form(request, row, form)
        return self._done(request, row.job, result)

    def _refused(self, request: HttpRequest, row: Any) -> HttpResponse:
        self.message_user(request, str(redaction.REFUSAL), messages.ERROR)
        change = f"robust_queue_{self.opts.model_name}_change"
        return HttpResponseRedirect(self._url(change, row.pk))

    def _rerun(self, job: Job, form: RerunForm) -> AnyResult | None:
        args, kwargs = form.cleaned_data["arguments"]
        try:
            return rerun(
                home_of(job),
                job.id,
                args=args,
                kwargs=kwargs,
                queue_name=form.cleaned_data["queue_name"],
                priority=form.cleaned_data["priority"],
            )
        except REFUSALS as refusal:
            is_about_arguments = isinstance(refusal, TypeError)
            form.add_error("arguments" if is_about_arguments else None, str(refusal))
            return None

    def _form(self, request: HttpRequest, row: Any, form: RerunForm) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            **self.frame(request),
            "title": _("Edit and re-run"),
            "subtitle": row.job.task_path,
            "opts": self.opts,
            "media": self.media + form.media,
            "form": form,
            "row": row,
            "replaces": self.replaces,
        }
        request.current_app = self.admin_site.name
        template = "admin/robust_queue/rerun.html"
        return TemplateResponse(request, template, context)

    def _done(self, request: HttpRequest, old: Job, result: AnyResult) -> HttpResponse:
        new = Job(id=result.id, task_path=old.task_path)
        if self.replaces:
            record(request, [old], DELETION)
            note, told = _("In place of job %s."), _("Job %s was replaced.")
        else:
            note, told = _("Made from job %s."), _("Job %s runs anew, as this one.")
        record(request, [new], ADDITION, note % old.id)
        self.message_user(request, told % old.id)
        return HttpResponseRedirect(self._url("robust_queue_job_change", new.id))

    @property
    def _rerun_name(self) -> str:
        return f"robust_queue_{self.opts.model_name}_rerun"

    def _url(self, name: str, pk: Any) -> str:
        site = self.admin_site.name
        return reverse(f"admin:{name}", args=[quote(pk)], current_app=site)


def _initial(job: Job) -> dict[str, Any]:
    return {
        "arguments": editable(job.arguments),
        "queue_name": job.queue_name,
        "priority": job.priority,
    }
