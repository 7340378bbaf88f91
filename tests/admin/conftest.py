"""Who looks at the pages."""

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client


@pytest.fixture
def as_staff(db):
    """A browser of a member of staff who has these permissions and no others."""

    def log_in(*codenames):
        user = User.objects.create_user("ada", is_staff=True)
        chosen = Permission.objects.filter(codename__in=codenames)
        assert len(chosen) == len(codenames)
        user.user_permissions.set(chosen)
        return _browser(user)

    return log_in


@pytest.fixture
def as_superuser(db):
    """A browser of someone who may do everything."""
    return _browser(User.objects.create_superuser("root"))


@pytest.fixture
def root(db):
    return User.objects.create_superuser("root")


@pytest.fixture
def browse():
    """A browser of somebody; errors are answers."""

    def log_in(user):
        client = Client(raise_request_exception=False)
        client.force_login(user)
        return client

    return log_in


def _browser(user):
    client = Client()
    client.force_login(user)
    return client
