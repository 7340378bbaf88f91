"""Arguments as a form has them: the stored JSON, to be read and changed by people."""

import json
from typing import Any

from django import forms
from django.contrib.admin.widgets import AdminTextareaWidget
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from robust_queue.arguments import load_call
from robust_queue.exceptions import DeserializationError
from robust_queue.redaction import PLACEHOLDER


class ArgumentsField(forms.CharField):
    """Text that comes out as args and kwargs."""

    _copied = _("It has ••••••, which stands for a value that was not shown.")
    widget = AdminTextareaWidget(attrs={"rows": 16, "spellcheck": "false"})

    def __init__(self, **options: Any) -> None:
        options.setdefault("label", _("Arguments"))
        options.setdefault(
            "help_text",
            _(
                "JSON with args and kwargs, as it is stored: what has a $type is not "
                "plain JSON, but a date, a model or the like."
            ),
        )
        super().__init__(**options)

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if f'"{PLACEHOLDER}"' in editable(text):
            raise ValidationError(self._copied)
        try:
            return load_call(text)
        except DeserializationError as error:
            raise ValidationError(str(error)) from error


def editable(text: str) -> str:
    """Stored JSON with its lines and its letters, if it has any that can be sent."""
    try:
        value = json.loads(text)
        readable = json.dumps(value, indent=2, ensure_ascii=False)
        readable.encode()
    except (ValueError, RecursionError):
        return text
    return readable
