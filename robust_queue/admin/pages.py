"""Pages that are no list of rows, but stand in the index of the admin like one."""

from typing import Any

from django.apps import apps
from django.apps.registry import Apps
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from .base import ReadOnlyAdmin
from .live import is_wanted_in_part

# Where the models of pages live: neither migrations nor ``dumpdata`` nor content types
# hear of them. Themes ask a model for its app.
PAGES = Apps()
PAGES.app_configs["robust_queue"] = apps.get_app_config("robust_queue")


class PageAdmin(ReadOnlyAdmin):
    """One page, at the address where a list would be.

    Its model is a name for the index. It has no table.
    """

    title: Any = ""
    is_in_index = True

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.changelist_view)
        name = f"robust_queue_{self.opts.model_name}_changelist"
        return [path("", view, name=name)]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            return self.refusal(request) or self.press(request)
        context = {**self.facts(request), **(extra_context or {})}
        return self.page(request, "change_list", self.title, context)

    def facts(self, request: HttpRequest) -> dict[str, Any]:
        """What the page shows beside its title."""
        return {}

    def press(self, request: HttpRequest) -> HttpResponse:
        """Do what a button says. A page without buttons refuses."""
        raise PermissionDenied

    def page(
        self, request: HttpRequest, name: str, title: Any, more: dict[str, Any]
    ) -> HttpResponse:
        """A template of this page, within the frame of the admin."""
        context = {
            **self.admin_site.each_context(request),
            **self.frame(request),
            "title": title,
            "opts": self.opts,
            "media": self.media,
            **more,
        }
        if is_wanted_in_part(request):
            context["rqueue_frame"] = "admin/robust_queue/fragment.html"
        request.current_app = self.admin_site.name
        template = f"admin/robust_queue/{self.opts.model_name}/{name}.html"
        return TemplateResponse(request, template, context)
