"""The API, as the documentation has it."""

from django.urls import include, path

urlpatterns = [path("queue/", include("robust_queue.api.urls"))]
