"""The addresses of the tests: the admin and the API."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("queue/", include("robust_queue.api.urls")),
]
