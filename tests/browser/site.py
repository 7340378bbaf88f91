"""The site that the browser looks at: its server, its visitor, and its pages."""

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from html.parser import HTMLParser
from urllib.parse import parse_qs, urljoin, urlsplit

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.management import call_command
from django.db import connections
from django.http import HttpRequest
from django.test import Client
from django.test.testcases import LiveServerThread
from django.urls import NoReverseMatch, Resolver404, resolve, reverse

HOST = "localhost"
OURS = "robust_queue_"
# Addresses that only take what buttons send.
FOR_BUTTONS = 405
# Pages that every row has.
ABOUT_ROWS = ("_change", "_history", "_delete")

# Nothing inline, nothing from elsewhere: what breaks under it breaks visibly.
STRICT = {
    "MIDDLEWARE": [
        "django.middleware.csp.ContentSecurityPolicyMiddleware",
        *settings.MIDDLEWARE,
    ],
    "SECURE_CSP": {"default-src": ["'self'"]},
    "ALLOWED_HOSTS": [HOST, "testserver"],
}


def apart(function, *arguments):
    """Call it on a thread of its own, and return what it returns.

    Playwright has a loop running in the thread of the tests, where Django refuses to
    talk to a database.
    """
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(_then_hang_up, function, arguments).result()


def _then_hang_up(function, arguments):
    try:
        return function(*arguments)
    finally:
        connections.close_all()


@contextmanager
def served():
    """A server of its own thread, with the style sheets; yields its address."""
    thread = LiveServerThread(HOST, StaticFilesHandler)
    thread.start()
    thread.is_ready.wait()
    try:
        if thread.error:
            raise thread.error
        yield f"http://{HOST}:{thread.port}"
    finally:
        thread.terminate()


def log_in(name="ada"):
    """Somebody who may do everything; returns the key of a session."""
    client = Client()
    client.force_login(User.objects.create_superuser(name))
    return client.cookies[settings.SESSION_COOKIE_NAME].value


def migrate():
    """See to it that there are tables."""
    call_command("migrate", verbosity=0)


def empty():
    """Leave nothing behind for other tests."""
    call_command("flush", interactive=False, verbosity=0)


def page_names():
    """What the addresses of all pages of Robust Queue are called, new ones as well."""
    return sorted({name for each in _admins() for name in _names(each)})


def _admins():
    return [each for each in admin.site._registry.values() if _is_ours(each)]


def _is_ours(model_admin):
    return model_admin.opts.app_label == "robust_queue"


def _names(model_admin):
    """Those of its pages that somebody may see."""
    request = HttpRequest()
    request.user = User(is_superuser=True)
    closed = {
        "_add": not model_admin.has_add_permission(request),
        "_delete": not model_admin.has_delete_permission(request),
    }
    names = {url.name for url in model_admin.get_urls() if url.name}
    shut = tuple(end for end, is_closed in closed.items() if is_closed)
    return {name for name in names if not name.endswith(shut)}


class Atlas:
    """Where each page is found: the addresses that other pages link to."""

    def __init__(self, session):
        # What breaks is told by the test of the page that does.
        self.client = Client(raise_request_exception=False)
        self.client.cookies[settings.SESSION_COOKIE_NAME] = session
        self.found = {}
        self._explore(reverse("admin:index"))
        for name in page_names():
            if name not in self.found or name.endswith("_change"):
                self.found[name] = {each: each for each in _guesses(name)}
        self.no_pages = {*filter(self._is_no_page, page_names())}

    def of(self, name):
        """Addresses of the page of that name; of one that nobody links to, guesses."""
        return sorted(self.found[name].values())

    def _is_no_page(self, name):
        """Is it where a button leads, or what a script asks for?"""
        if not (addresses := self.of(name)):
            return not name.endswith(ABOUT_ROWS)
        answer = self.client.get(addresses[0])
        return answer.status_code == FOR_BUTTONS or b"<html" not in answer.content

    def _explore(self, start):
        todo = deque([start])
        while todo:
            todo += filter(self._is_new, self._links(todo.popleft()))

    def _is_new(self, link):
        """Is nothing alike known yet? Alike is what asks for the same thing."""
        name, asked = _name(link), _asked(link)
        if not name.startswith(OURS) or len(asked) > 1:
            return False
        known, kind = self.found.setdefault(name, {}), _kind(asked)
        is_new = kind not in known
        known.setdefault(kind, link)
        return is_new

    def _links(self, address):
        answer = self.client.get(address)
        if "html" not in answer.headers.get("Content-Type", ""):
            return []
        reader = _Links()
        reader.feed(answer.content.decode())
        return [urljoin(address, link) for link in reader.links]


class _Links(HTMLParser):
    """Reads where the links of a page lead."""

    def __init__(self):
        super().__init__()
        self.links = []

    def handle_starttag(self, tag, attrs):
        link = dict(attrs).get("href")
        if tag == "a" and link and not urlsplit(link).netloc:
            self.links.append(link.partition("#")[0])


def _name(address):
    try:
        return resolve(urlsplit(address).path).url_name or ""
    except Resolver404:
        return ""


def _asked(address):
    return parse_qs(urlsplit(address).query)


def _kind(asked):
    """What is asked for. Every state of a job has a list that looks like no other."""
    return (*asked, *asked.get("state", []))


def _guesses(name):
    """The page without arguments, or those about the first row and about the last."""
    pks = {pk for model in _models_of(name) for pk in _ends(model)}
    return [*filter(None, [_reversed(name), *(_reversed(name, pk) for pk in pks)])]


def _reversed(name, *pk):
    try:
        return reverse(f"admin:{name}", args=[*map(quote, pk)])
    except NoReverseMatch:
        return ""


def _models_of(name):
    tables = [each.opts for each in _admins() if each.opts.managed]
    return [
        each.model for each in tables if name.startswith(f"{OURS}{each.model_name}_")
    ]


def _ends(model):
    rows = model._default_manager.order_by("pk").only("pk")
    return [row.pk for row in (rows.first(), rows.last()) if row]
