"""A module that asks the database when it is imported, as some do."""

from tests.testapp.models import Mark

FOUND = Mark.objects.count()
