"""Processes: who is alive."""

import os
import socket
from datetime import timedelta
from typing import Any, Self
from uuid import UUID

from django.db import models
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from robust_queue.fields import IdField, NameField, UtcField

# What takes jobs: our own workers, and those that ask for them over the HTTP API.
WORKER = "Worker"
EXTERNAL = "External"
WORKING = (WORKER, EXTERNAL)


class DatabaseNow(Now):
    """The moment by the server's own clock, in UTC as ``UtcField`` keeps it.

    Hosts disagree about the time, and a zone may change its clocks. Who has been silent
    for how long is judged by the one clock that all of them share.
    """

    def as_mysql(self, compiler: Any, connection: Any, **kwargs: Any) -> Any:
        # Elsewhere it is UTC, or an instant, already.
        template = "UTC_TIMESTAMP(6)"
        return self.as_sql(compiler, connection, template=template, **kwargs)


class ProcessQuerySet(models.QuerySet["Process"]):
    """Processes, narrowed by when they were last heard of."""

    def register(
        self,
        kind: str,
        *,
        identity: UUID,
        supervisor_id: UUID | None = None,
        metadata: str = "",
        memory: int | None = None,
    ) -> "Process":
        """Write this process down as alive."""
        return self.create(
            id=identity,
            kind=kind,
            name=name_of(kind, identity, pid=os.getpid()),
            pid=os.getpid(),
            hostname=_hostname()[:255],
            supervisor_id=supervisor_id,
            metadata=metadata,
            created_at=DatabaseNow(),
            last_heartbeat_at=DatabaseNow(),
            memory=memory,
        )

    def enlist(
        self,
        *,
        identity: UUID,
        name: str,
        pid: int = 0,
        hostname: str = "",
        metadata: str = "",
    ) -> "Process":
        """Write down a worker outside of this project, as it tells of itself."""
        return self.create(
            id=identity,
            kind=EXTERNAL,
            name=name,
            pid=pid,
            hostname=hostname,
            metadata=metadata,
            created_at=DatabaseNow(),
            last_heartbeat_at=DatabaseNow(),
        )

    def beat(self, identity: UUID, *, memory: int | None = None) -> bool:
        """Tell that a process is alive, and how large; False if it was taken for dead.

        All in one statement, since this is what an idle process costs.
        """
        told: dict[str, Any] = {"last_heartbeat_at": DatabaseNow()}
        if memory is not None:
            told["memory"] = memory
        return bool(self.filter(pk=identity).update(**told))

    def strike_off(self, identity: UUID) -> bool:
        """Delete the row of a process, if it is among these; tell whether it was.

        In one statement: Django's own delete reads first where anybody listens, and
        what was true of the row then may not be any more.
        """
        return bool(self.filter(pk=identity)._raw_delete(self.db))

    def silent_for(self, threshold: timedelta) -> Self:
        """Those that have not been heard of for longer than that."""
        return self.filter(last_heartbeat_at__lt=_ago(threshold))

    def heard_within(self, threshold: timedelta) -> Self:
        """Those that have been heard of since."""
        return self.filter(last_heartbeat_at__gte=_ago(threshold))


def name_of(kind: str, identity: UUID, *, pid: int) -> str:
    """What people and logs call a process: unique, and telling where to look for it."""
    return f"{kind.lower()}-{identity.hex[-8:]}:{pid}@{_hostname()}"[:128]


def _hostname() -> str:
    # Any bytes may name a host; those that are no text are told as escapes.
    name = socket.gethostname()
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def _ago(threshold: timedelta) -> CombinedExpression:
    return DatabaseNow() - threshold


class Process(models.Model):
    """A supervisor, worker, dispatcher or scheduler, for as long as it beats.

    Or a worker outside, for as long as it calls.
    """

    id = IdField(primary_key=True, editable=False)
    kind = NameField(_("kind"), max_length=32)
    name = NameField(_("name"), max_length=128)
    pid = models.PositiveIntegerField(_("process id"))
    hostname = NameField(_("host"), max_length=255)
    supervisor_id = IdField(_("supervisor"), null=True, blank=True)
    metadata = models.TextField(_("metadata"), default="", blank=True)
    created_at = UtcField(_("started at"))
    last_heartbeat_at = UtcField(_("last heartbeat"))
    memory = models.PositiveBigIntegerField(
        _("memory"), null=True, blank=True, help_text=_("Resident, in bytes.")
    )

    objects = ProcessQuerySet.as_manager()

    class Meta:
        db_table = "robust_queue_processes"
        verbose_name = _("process")
        verbose_name_plural = _("processes")
        permissions = [("manage_process", "Can quiet, stop and tune processes")]
        indexes = [
            models.Index(fields=["last_heartbeat_at"], name="rqueue_silent_processes"),
            models.Index(fields=["supervisor_id"], name="rqueue_supervised_by"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["name"], name="rqueue_process_name"),
        ]

    def __str__(self) -> str:
        return str(self.name)
