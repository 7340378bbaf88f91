"""The form of a recurring task, judged as a declaration in code would be."""

from copy import copy
from functools import cache
from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.contrib.admin.widgets import AdminTextareaWidget, AdminTextInputWidget
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from robust_queue import registry
from robust_queue.arguments import dump_call
from robust_queue.compat import AnyTask, InvalidTask
from robust_queue.lifecycle.hand_in import kept_in
from robust_queue.models import RecurringTask
from robust_queue.recurrence import recurrence_of

from .arguments import ArgumentsField, editable

# What people may write of a recurring task, beside its task and its arguments.
OPTIONS = (
    "key",
    "schedule",
    "timezone",
    "description",
    "enabled",
    "queue_name",
    "priority",
    "on_missed",
    "missed_limit",
    "overlap",
    "jitter",
)
# Nothing written: the task has a say, or the project.
_UP_TO_OTHERS = ("timezone", "queue_name")
LIST_OF_ZONES = "rqueue-zones"  # the id of the datalist in the template

NO_ARGUMENTS = dump_call([], {})
# With these every task can recur, if it can be called with its arguments.
_SOUND = {"key": "any", "schedule": "@daily"}
_REFUSALS = (ValueError, TypeError, OverflowError, InvalidTask)


def declared_tasks(database: str, current: str = "") -> list[tuple[str, str]]:
    """The tasks to choose from: all whose jobs are not kept in another database.

    A task that recurs by now may be one of another backend, which nobody has listed.
    """
    homes = {None, database}
    tasks = registry.discover()
    if task := registry.find(current):
        tasks[current] = task
    paths = sorted(path for path, task in tasks.items() if kept_in(task) in homes)
    return [("", "---------"), *((path, path) for path in paths)]


@cache
def zone_names() -> list[str]:
    """The names to choose a time zone from."""
    return sorted(available_timezones())


class RecurringForm(forms.ModelForm):  # type: ignore[type-arg]
    """What may be said about a recurring task that was made at run time.

    If it is valid, ``options`` are what the verb takes beside the key and the task.
    """

    database: str  # told by whoever makes a class of this one for a request

    task_path = forms.ChoiceField(
        label=_("Task"),
        help_text=_("One of the tasks that the code declares. Nothing else can recur."),
    )
    arguments = ArgumentsField()

    class Meta:
        model = RecurringTask
        fields = ["task_path", "arguments", *OPTIONS]
        widgets = {
            "schedule": AdminTextInputWidget(attrs={"spellcheck": "false"}),
            "timezone": AdminTextInputWidget(
                attrs={"list": LIST_OF_ZONES, "spellcheck": "false"}
            ),
            "description": AdminTextareaWidget(attrs={"rows": 3}),
        }
        help_texts = {
            "schedule": _(
                "Such as “30 6 * * mon-fri”, with seconds first if there are six "
                "fields, “@daily” or “every 5 minutes”."
            ),
            "queue_name": _("Empty: that of the task."),
            "priority": _("Empty: that of the task."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # The page around the form goes on telling what is stored.
        self.instance = copy(self.instance)
        self.options: dict[str, Any] = {}
        tasks: Any = self.fields["task_path"]
        tasks.choices = declared_tasks(self.database, self.instance.task_path)
        stored = self.initial.get("arguments") or NO_ARGUMENTS
        self.initial["arguments"] = editable(stored)

    def clean_key(self) -> str:
        key: str = self.cleaned_data["key"]
        rows = RecurringTask.objects.using(self.database)
        if rows.filter(key=key, retired_at=None).exists():
            raise ValidationError(_("There is a recurring task of that key already."))
        return key

    def clean(self) -> dict[str, Any]:
        super().clean()
        if {"task_path", "arguments"} <= self.cleaned_data.keys():
            self._judge(registry.resolve(self.cleaned_data["task_path"]))
        return self.cleaned_data

    def validate_unique(self) -> None:
        """Left to clean_key(): the key of what is retired is free."""

    def _judge(self, task: AnyTask) -> None:
        """Add one option after the other, so that each is blamed for its own."""
        args, kwargs = self.cleaned_data["arguments"]
        sound: dict[str, Any] = {**_SOUND, "args": args, "kwargs": kwargs}
        if not self._accepts("arguments", task, sound):
            return
        for name in OPTIONS:
            if name in self.cleaned_data:
                tried = {**sound, name: self._given(name)}
                sound = tried if self._accepts(name, task, tried) else sound
        self.options = {name: sound[name] for name in sound if name != "key"}
        # The column holds text.
        self.cleaned_data["arguments"] = dump_call(args, kwargs)

    def _given(self, name: str) -> Any:
        value = self.cleaned_data[name]
        return None if name in _UP_TO_OTHERS and value == "" else value

    def _accepts(self, field: str, task: AnyTask, options: dict[str, Any]) -> bool:
        try:
            recurrence_of(task, **options)
        except _REFUSALS as refusal:
            self.add_error(field, str(refusal).removeprefix("@recurring: "))
            return False
        return True
