"""What the doctor said, asserted upon."""


def only(found, words):
    """The one finding, which says this."""
    ((text, (severity, offenders)),) = found.items()
    assert words in text
    return severity, offenders
