"""What is counted or locked across jobs."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from robust_queue.fields import IdField, NameField


class Semaphore(models.Model):
    """The free slots of a concurrency key."""

    key = NameField(_("key"), max_length=255, primary_key=True)
    value = models.IntegerField(_("free slots"))
    limit = models.PositiveIntegerField(_("limit"), db_column="slots")
    expires_at = models.DateTimeField(_("expires at"))

    class Meta:
        db_table = "robust_queue_semaphores"
        verbose_name = _("semaphore")
        verbose_name_plural = _("semaphores")
        indexes = [models.Index(fields=["expires_at"], name="rqueue_semaphore_expiry")]
        constraints = [
            models.CheckConstraint(
                # May be negative: a limit that was lowered has more holders than slots.
                condition=models.Q(value__lte=models.F("limit")),
                name="rqueue_slots_within_limit",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.key}: {self.value} of {self.limit} free"


class Cancellation(models.Model):
    """Asks whoever runs a job to end it."""

    job_id = IdField(_("job"), primary_key=True)
    requested_at = models.DateTimeField(_("requested at"))

    class Meta:
        db_table = "robust_queue_cancellations"
        verbose_name = _("cancellation")
        verbose_name_plural = _("cancellations")

    def __str__(self) -> str:
        return f"cancellation of {self.job_id}"


class UniqueLock(models.Model):
    """Keeps a unique task from being enqueued twice."""

    key = NameField(_("hashed key"), max_length=64, primary_key=True)
    job_id = IdField(_("job"))
    expires_at = models.DateTimeField(_("expires at"), null=True, blank=True)

    class Meta:
        db_table = "robust_queue_unique_locks"
        verbose_name = _("unique lock")
        verbose_name_plural = _("unique locks")
        indexes = [
            models.Index(fields=["job_id"], name="rqueue_lock_of_job"),
            models.Index(fields=["expires_at"], name="rqueue_lock_expiry"),
        ]

    def __str__(self) -> str:
        return f"{self.key} held by {self.job_id}"
