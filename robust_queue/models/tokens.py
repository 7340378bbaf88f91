"""What the HTTP API remembers: who may do what there, and what was asked for."""

from uuid import uuid4

from django.core.validators import MinValueValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from robust_queue.fields import IdField, NameField, UtcField
from robust_queue.scopes import Scopes


class ApiToken(models.Model):
    """A bearer token. What it looks like was shown once, and is kept nowhere."""

    # Part of the token. Random, unlike other ids: it tells nobody when it was made.
    id = IdField(primary_key=True, default=uuid4, editable=False)
    name = NameField(
        _("name"), max_length=128, help_text=_("What it is for, and who has it.")
    )
    # SHA-256 of the secret. The secret is 256 bits of chance, not a password that
    # somebody has thought of: neither salt nor a slow digest would make it safer.
    digest = NameField(_("digest"), max_length=64, editable=False)
    scopes = models.TextField(_("scopes"))
    created_at = UtcField(_("created at"))
    created_by = NameField(_("created by"), max_length=150, default="", blank=True)
    expires_at = UtcField(
        _("expires at"), null=True, blank=True, help_text=_("Empty: never.")
    )
    last_used_at = UtcField(
        _("last used at"), null=True, blank=True, help_text=_("To the minute.")
    )
    revoked_at = UtcField(_("revoked at"), null=True, blank=True)
    requests_per_minute = models.PositiveIntegerField(
        _("requests per minute"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_(
            "Limit for this token. Empty: the setting api_requests_per_minute."
        ),
    )

    class Meta:
        db_table = "robust_queue_api_tokens"
        verbose_name = _("API token")
        verbose_name_plural = _("API tokens")

    def __str__(self) -> str:
        return str(self.name)

    @property
    def granted(self) -> Scopes:
        """What its bearer may do."""
        return Scopes.kept(self.scopes)

    @property
    def state(self) -> str:
        """``active``, ``expired`` or ``revoked``."""
        if self.revoked_at is not None:
            return "revoked"
        if self.expires_at is not None and self.expires_at <= timezone.now():
            return "expired"
        return "active"

    @property
    def is_valid(self) -> bool:
        """Does it still open anything?"""
        return self.state == "active"


class NamedRequest(models.Model):
    """A request to enqueue, by the name that whoever asked has given it.

    When it comes again it is answered with the job that is there, or was.
    """

    key = NameField(_("hashed name"), max_length=64, primary_key=True)
    sent = NameField(_("digest of what was asked for"), max_length=64)
    job_id = IdField(_("job"))
    expires_at = UtcField(_("expires at"))

    class Meta:
        db_table = "robust_queue_named_requests"
        verbose_name = _("named request")
        verbose_name_plural = _("named requests")
        indexes = [models.Index(fields=["expires_at"], name="rqueue_request_expiry")]

    def __str__(self) -> str:
        return f"{self.key} of job {self.job_id}"
