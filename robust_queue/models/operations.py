"""Operations: what somebody wants done to very many jobs, and how far it has come."""

import json

from django.db import models
from django.utils.translation import gettext_lazy as _

from robust_queue.fields import IdField, NameField
from robust_queue.identifiers import new_job_id

VERBS = [
    ("retry", _("retry")),
    ("discard", _("discard")),
    ("cancel", _("cancel")),
    ("run_now", _("run now")),
    ("clear", _("clear")),
]


class Operation(models.Model):
    """One verb for all jobs that match, carried out in batches by a dispatcher."""

    id = IdField(primary_key=True, default=new_job_id, editable=False)
    verb = NameField(_("what"), max_length=16, choices=VERBS)
    criteria = models.TextField(_("which jobs"), help_text=_("As JSON."))
    requested_by = NameField(_("by"), max_length=255, default="", blank=True)
    requested_at = models.DateTimeField(_("requested at"))
    started_at = models.DateTimeField(_("started at"), null=True, blank=True)
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)
    # Somebody has had second thoughts: what is done stays done.
    stopped_at = models.DateTimeField(_("stopped at"), null=True, blank=True)
    # Who carries it out, and until when nobody else may.
    process_id = IdField(_("process"), null=True, blank=True)
    leased_until = models.DateTimeField(_("leased until"), null=True, blank=True)
    # Behind which job to go on; in the table of which state.
    state = NameField(_("state"), max_length=16, default="", blank=True)
    cursor = IdField(_("latest job"), null=True, blank=True)
    # No job that came later is meant.
    newest = IdField(_("newest job"))
    expected = models.PositiveBigIntegerField(_("expected"), null=True, blank=True)
    matched = models.PositiveBigIntegerField(_("met"), default=0)
    done = models.PositiveBigIntegerField(_("done"), default=0)
    passed_over = models.TextField(_("passed over"), default="", blank=True)
    problem = models.TextField(_("problem"), default="", blank=True)
    # Batches in a row that have gone wrong.
    failures = models.PositiveSmallIntegerField(_("failures in a row"), default=0)

    class Meta:
        db_table = "robust_queue_operations"
        verbose_name = _("operation")
        verbose_name_plural = _("operations")
        indexes = [
            models.Index(fields=["finished_at", "id"], name="rqueue_open_operations"),
        ]

    def __str__(self) -> str:
        return f"{self.get_verb_display()} {self.id}"

    @property
    def status(self) -> str:
        """``waiting``, ``running``, ``stopped``, ``given up`` or ``finished``."""
        if self.stopped_at is not None:
            return "stopped"
        if self.finished_at is not None:
            return "given up" if self.problem else "finished"
        return "waiting" if self.started_at is None else "running"

    @property
    def reasons(self) -> dict[str, int]:
        """Why jobs were passed over, and how many for each reason."""
        found: dict[str, int] = json.loads(self.passed_over or "{}")
        return found
