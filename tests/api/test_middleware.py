"""What a project has for its own pages changes nothing about the API."""

import pytest
from django.core.cache import cache as default_cache
from django.test import modify_settings

from robust_queue.lifecycle.tokens import create_token

from .conftest import Caller

pytestmark = pytest.mark.django_db


class TestLogins:
    """Where Django asks for a login at every address."""

    @pytest.fixture(autouse=True)
    def required(self):
        name = "django.contrib.auth.middleware.LoginRequiredMiddleware"
        with modify_settings(MIDDLEWARE={"append": name}):
            yield

    @pytest.mark.parametrize("path", ["/jobs", "/openapi.json"])
    def test_a_token_is_enough(self, token, path):
        assert token("read").get(path).status_code == 200

    def test_who_shows_nothing_is_told_so(self):
        assert Caller().get("/jobs").status_code == 401
        assert Caller().get("/nothing").status_code == 404
        assert Caller().get("/docs/begin.js").status_code == 200


class TestCaches:
    """Where Django keeps the answers of a whole site."""

    @pytest.fixture(autouse=True)
    def kept(self, settings):
        cache = "django.middleware.cache"
        settings.MIDDLEWARE = [
            f"{cache}.UpdateCacheMiddleware",
            *settings.MIDDLEWARE,
            f"{cache}.FetchFromCacheMiddleware",
        ]
        yield
        default_cache.clear()

    @pytest.mark.parametrize("path", ["/queues", "/openapi.json"])
    def test_keep_nothing_for_who_has_no_token_any_more(self, path):
        row, text = create_token("default", name="old", scopes=["read"])
        assert Caller(text).get(path).status_code == 200
        row.revoked_at = row.created_at
        row.save()
        assert Caller(text).get(path).status_code == 401

    @pytest.mark.parametrize(
        "path", ["/jobs", "/jobs/stream", "/openapi.json", "/docs", "/docs/x", "/x"]
    )
    @pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
    def test_are_told_to_keep_no_answer(self, token, path, method):
        told = token("read").request(method, path)["Cache-Control"]
        assert {*told.split(", ")} == {"private", "no-store", "max-age=0"}

    def test_may_keep_scripts_and_styles(self):
        assert Caller().get("/docs/begin.js")["Cache-Control"] == "max-age=3600"
