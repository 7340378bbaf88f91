"""Queues exist by being named; only what operators ask of them is stored."""

from datetime import datetime

from django.db import models
from django.utils.translation import gettext_lazy as _

from robust_queue.fields import IdField, NameField


def in_force(now: datetime) -> models.Q:
    """Of pauses: those that have not come to their end by then."""
    return models.Q(until=None) | models.Q(until__gt=now)


def over(now: datetime) -> models.Q:
    """Those that have, and wait for somebody to take them away."""
    return models.Q(until__lte=now)


class Pause(models.Model):
    """A queue that gives out no work for now."""

    queue_name = NameField(_("queue"), max_length=128, primary_key=True)
    created_at = models.DateTimeField(_("paused at"), auto_now_add=True)
    until = models.DateTimeField(
        _("until"), null=True, blank=True, help_text=_("Empty: until it is resumed.")
    )

    class Meta:
        db_table = "robust_queue_pauses"
        verbose_name = _("pause")
        verbose_name_plural = _("pauses")

    def __str__(self) -> str:
        return str(self.queue_name)


class TaskPause(models.Model):
    """A task of which no job is begun for now, whatever its queue."""

    task_path = NameField(_("task"), max_length=255, primary_key=True)
    created_at = models.DateTimeField(_("paused at"), auto_now_add=True)
    until = models.DateTimeField(
        _("until"), null=True, blank=True, help_text=_("Empty: until it is resumed.")
    )

    class Meta:
        db_table = "robust_queue_task_pauses"
        verbose_name = _("pause of a task")
        verbose_name_plural = _("pauses of tasks")

    def __str__(self) -> str:
        return str(self.task_path)


class Tuning(models.Model):
    """What an operator asks of a process that runs: other queues, or to take no more.

    Only workers have queues and threads; supervisors pass the rest on.
    """

    process_id = IdField(_("process"), primary_key=True)
    threads = models.PositiveIntegerField(_("threads"), null=True, blank=True)
    queues = models.TextField(
        _("queues"), default="", blank=True, help_text=_("Separated by commas.")
    )
    is_quiet = models.BooleanField(
        _("quiet"),
        default=False,
        db_default=False,
        help_text=_("Goes on with what it has, and takes nothing new."),
    )
    is_to_stop = models.BooleanField(
        _("to stop"),
        default=False,
        db_default=False,
        help_text=_("Ends when what it has is over. A worker is replaced."),
    )
    requested_at = models.DateTimeField(_("requested at"), auto_now=True)

    class Meta:
        db_table = "robust_queue_tunings"
        verbose_name = _("tuning")
        verbose_name_plural = _("tunings")

    def __str__(self) -> str:
        return f"tuning of {self.process_id}"
