"""Everything that can be done in the admin, and a world to which all of it can be."""

from typing import NamedTuple
from uuid import UUID

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.test import RequestFactory
from django.urls import reverse

from robust_queue.admin.job_deeds import DEEDS as VERBS
from robust_queue.models import (
    ApiToken,
    FailedExecution,
    Operation,
    Pause,
    Process,
    RecurringTask,
    ScheduledExecution,
    Tuning,
)
from tests.support import rows

from .recurring_pages import filled, made

# What Django's actions say that they take, and the permission that it is.
TAKES = {
    "retry": "retry_job",
    "discard": "discard_job",
    "cancel": "cancel_job",
    "run": "run_job",
    "pause": "pause_queue",
    "add": "add_recurringtask",
    "change": "change_recurringtask",
    "delete": "delete_recurringtask",
    "manage": "manage_process",
    "revoke": "change_apitoken",
    "add a token": "add_apitoken",
    "delete a token": "delete_apitoken",
}
TAKEN_BY_VERB = {verb: TAKES[verb.removesuffix("_now")] for verb in VERBS}


class Deed(NamedTuple):
    """What a browser sends, and the permissions that it takes."""

    address: str
    body: dict
    takes: frozenset


def make_world():
    """At least one row of every table, to each of which something can be done."""
    for make in rows.MAKERS.values():
        make()
    chief = rows.process("Supervisor")
    worker = rows.process(supervisor_id=chief.pk)
    rows.claimed(by=worker)
    quiet = rows.process(supervisor_id=chief.pk)
    rows.tuning(process_id=quiet.pk, is_quiet=True)
    made("runs")
    made("rests", enabled=False)


def tables(using="default"):
    """All that is stored."""
    models = apps.get_app_config("robust_queue").get_models()
    return [list(m.objects.using(using).order_by("pk").values()) for m in models]


def log_length():
    return LogEntry.objects.count()


def pages():
    """The pages of ours, by the names of their models."""
    return {
        model._meta.model_name: page
        for model, page in admin.site._registry.items()
        if model._meta.app_label == "robust_queue"
    }


def address(name, *args, query=""):
    return reverse(f"admin:robust_queue_{name}", args=args) + query


def deeds(user):
    """Every deed that there is, by a name; actions as far as this user has them."""
    return {**_buttons(), **_forms(), **_on_jobs(), **dict(_actions(user))}


def addresses():
    """Every page of ours, of every row that there is."""
    for name, page in pages().items():
        for pattern in page.get_urls():
            if pattern.name:
                yield from _reversed(name, page, pattern)


def _reversed(name, page, pattern):
    converters = pattern.pattern.converters
    is_stored = name in {model._meta.model_name for model in rows.MAKERS}
    found = page.model.objects.all() if "object_id" in converters and is_stored else []
    for row in found or [None] * ("object_id" not in converters):
        for verb in VERBS if "verb" in converters else [None]:
            given = {"object_id": row and quote(row.pk), "verb": verb}
            yield reverse(
                f"admin:{pattern.name}",
                kwargs={each: given[each] for each in converters},
            )


def _of(*names):
    return frozenset(TAKES[name] for name in names)


def _buttons():
    chief = Process.objects.filter(kind="Supervisor").get()
    workers = Process.objects.filter(supervisor_id=chief.pk)
    tree, queues = address("processtree_changelist"), address("queue_changelist")
    failures = address("failures_changelist")
    group = {"task": rows.TASK, "exception": "builtins.ValueError"}
    group["kind"] = FailedExecution.objects.first().kind
    paused = Pause.objects.first().pk
    sure = {"confirmed": "1"}
    manage, pause, discard = _of("manage"), _of("pause"), _of("discard")
    return {
        "quiet": Deed(tree, {"quiet": workers[0].pk}, manage),
        "wake": Deed(tree, {"wake": _quiet_one(workers)}, manage),
        "restart": Deed(tree, {"stop": workers[0].pk}, manage),
        "quiet all": Deed(tree, {"quiet": chief.pk}, manage),
        "stop all": Deed(tree, {"stop": chief.pk, **sure}, manage),
        "pause a queue": Deed(queues, {"pause": "default", "length": "15"}, pause),
        "resume a queue": Deed(queues, {"resume": paused}, pause),
        "clear a queue": Deed(queues, {"clear": "default", **sure}, discard),
        "retry a group": Deed(failures, {"retry": "", **group}, _of("retry")),
        "discard a group": Deed(failures, {"discard": "", **group, **sure}, discard),
    }


def _quiet_one(workers) -> UUID:
    return Tuning.objects.filter(is_quiet=True, pk__in=workers.values("pk")).get().pk


def _forms():
    operation = Operation.objects.get()
    runs, rests = (RecurringTask.objects.get(key=key) for key in ("runs", "rests"))
    failed = FailedExecution.objects.first()
    again = {"arguments": '{"args": [1], "kwargs": {}}', "queue_name": "x"}
    both = _of("retry", "discard")
    rerun = address("failedexecution_rerun", failed.pk)
    order = address("recurringtask_order", runs.pk)
    resume = address("recurringtask_order", rests.pk)
    change = address("recurringtask_change", runs.pk)
    delete = address("recurringtask_delete", runs.pk)
    later = filled(key=None, schedule="0 13 * * *")
    token = ApiToken.objects.first().pk
    revoke, gone = (address(f"apitoken_{it}", token) for it in ("revoke", "delete"))
    new = {"name": "new", "scopes": "read"}
    return {
        "stop": Deed(address("operation_stop", operation.pk), {}, _of("retry")),
        "rerun": Deed(rerun, {**again, "priority": "3"}, both),
        "run": Deed(order, {"order": "run"}, _of("run")),
        "pause": Deed(order, {"order": "pause"}, _of("change")),
        "resume": Deed(resume, {"order": "resume"}, _of("change")),
        "add": Deed(address("recurringtask_add"), filled(key="new"), _of("add")),
        "change": Deed(change, later, _of("change")),
        "delete": Deed(delete, {"post": "yes"}, _of("delete")),
        "revoke": Deed(revoke, {}, _of("revoke")),
        "add a token": Deed(address("apitoken_add"), new, _of("add a token")),
        "delete a token": Deed(gone, {"post": "yes"}, _of("delete a token")),
    }


def _on_jobs():
    found = {}
    of_state = {"retry": FailedExecution, "run_now": ScheduledExecution}
    for verb, permission in TAKEN_BY_VERB.items():
        row = of_state.get(verb, ScheduledExecution).objects.first()
        takes = frozenset([permission])
        one = address("job_do", row.pk, verb)
        found[f"{verb} one"] = Deed(one, {"confirmed": "1"}, takes)
        query = f"?verb={verb}"
        found[f"{verb} all"] = Deed(address("job_bulk", query=query), {}, takes)
    return found


def _actions(user):
    request = RequestFactory().get("/")
    request.user, request.session = user, {}
    for name, page in pages().items():
        for action in page.get_actions(request):
            body = {
                "action": action,
                "_selected_action": [str(row.pk) for row in page.model.objects.all()],
                "index": "0",
                "post": "yes",
            }
            asked = getattr(page, action).allowed_permissions
            takes = _of(*(_said_of(name, each) for each in asked))
            yield f"{name} {action}", Deed(address(f"{name}_changelist"), body, takes)


def _said_of(name, permission):
    """Two of the tables have rows that are deleted by their own permissions."""
    is_token = name == "apitoken" and permission == "delete"
    return "delete a token" if is_token else permission
