"""The addresses of what runs the queue in tests: no more than checks look at."""

from django.contrib import admin
from django.urls import path

urlpatterns = [path("admin/", admin.site.urls)]
