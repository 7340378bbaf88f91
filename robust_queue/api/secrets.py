"""What a worker is known by: computed from its id, and written down nowhere."""

import hmac
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils.crypto import salted_hmac
from django.views.decorators.debug import sensitive_variables

_SALT = "robust_queue.api.worker"


@sensitive_variables("key", "made")
def secret_of(worker_id: UUID, key: Any = None) -> str:
    """By what this worker is known."""
    made = salted_hmac(_SALT, worker_id.hex, secret=key, algorithm="sha256")
    return made.hexdigest()


@sensitive_variables("told", "key", "keys")
def is_secret_of(worker_id: UUID, told: str) -> bool:
    """Is it the worker's? To find that out takes as long either way."""
    # A key that was changed is good for a while, as it is for sessions.
    keys = (None, *settings.SECRET_KEY_FALLBACKS)
    known = [hmac.compare_digest(told, secret_of(worker_id, key)) for key in keys]
    return any(known)
