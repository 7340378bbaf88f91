"""The addresses of the example: the admin, which shows the queue, and its API."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
    path("queue/", include("robust_queue.api.urls")),
]
