"""What is counted or locked across jobs."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from robust_queue.fields import IdField, NameField, UtcField


class Semaphore(models.Model):
    """The free slots of a concurrency key."""

    key = NameField(_("key"), max_length=255, primary_key=True)
    value = models.IntegerField(_("free slots"))
    limit = models.PositiveIntegerField(_("limit"), db_column="slots")
    expires_at = models.DateTimeField(
        _("expires at"), help_text=_("From then on its count is looked through.")
    )
    holder_id = IdField(
        _("latest holder"), null=True, blank=True, help_text=_("Took a slot last.")
    )

    class Meta:
        db_table = "robust_queue_semaphores"
        verbose_name = _("semaphore")
        verbose_name_plural = _("semaphores")
        # No index but that of the key: a change of its count is noted in every index.
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


class RateBucket(models.Model):
    """How much of a rate has been used, by the clock of the database."""

    key = NameField(_("key"), max_length=255, primary_key=True)
    level = models.FloatField(_("level"), help_text=_("What is left to be used."))
    counted_at = UtcField(_("counted at"))
    spread_to = UtcField(
        _("spread to"),
        null=True,
        blank=True,
        help_text=_("Jobs that came too early are told to come back until then."),
    )
    last_id = IdField(
        _("last"), null=True, blank=True, help_text=_("Who was told to come back then.")
    )

    class Meta:
        db_table = "robust_queue_rate_buckets"
        verbose_name = _("rate bucket")
        verbose_name_plural = _("rate buckets")
        indexes = [models.Index(fields=["counted_at"], name="rqueue_rate_counted")]

    def __str__(self) -> str:
        return f"{self.key}: {self.level:g} left"
