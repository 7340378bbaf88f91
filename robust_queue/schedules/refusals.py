"""What is said to whoever writes a schedule that makes no sense."""

FORMS = (
    "Write five fields (minute, hour, day of the month, month, day of the week), six "
    "with seconds as the first, a name such as @daily, or an interval such as 'every "
    "5 minutes'."
)


def refusal(text: object, cause: str, *, cure: str = "") -> ValueError:
    """The error to raise: what was written, what is wrong, and what would be right."""
    return ValueError(f"{text!r} is no schedule: {cause}. {cure}".rstrip())
