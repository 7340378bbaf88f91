"""A site of its own beside the usual one, with all pages of ours."""

from django.contrib import admin
from django.contrib.admin import AdminSite
from django.urls import path

from robust_queue.admin import register

office = AdminSite(name="office")
register(office)

urlpatterns = [path("admin/", admin.site.urls), path("office/", office.urls)]
