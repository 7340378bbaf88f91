"""Scopes: what the bearer of a token may do, written as words."""

from collections.abc import Iterable
from dataclasses import dataclass

# What is allowed as a whole, and what is allowed by name.
PLAIN = ("read", "read_arguments", "operate")
NAMED = ("enqueue", "work")

KNOWN = (
    "The scopes are read, read_arguments, operate, enqueue:TASK and work:QUEUE, where "
    "a name may end in * and enqueue or work alone mean all."
)
EVERYTHING = "*"
# As long as the path of a task may be.
MOST_LETTERS = 255


class ScopeError(ValueError):
    """A text is no scope, and why."""


@dataclass(frozen=True, slots=True)
class Scopes:
    """What somebody may do. ``texts`` are sorted, each of them once and in full."""

    texts: tuple[str, ...] = ()

    @classmethod
    def read(cls, texts: Iterable[str]) -> "Scopes":
        """Read scopes, from a text with spaces between them as well."""
        words = texts.split() if isinstance(texts, str) else texts
        return cls(tuple(sorted({_in_full(each) for each in words})))

    @classmethod
    def kept(cls, text: str) -> "Scopes":
        """What of a stored text is known here: a later version may know others."""
        return cls(tuple(sorted({each for each in text.split() if _is_scope(each)})))

    def __str__(self) -> str:
        return " ".join(self.texts)

    def allows(self, kind: str, name: str = "") -> bool:
        """Is this allowed, with the task or the queue of this name?

        A name may be a pattern itself: is all allowed that it stands for?
        """
        if kind in NAMED:
            return any(_covers(each, name) for each in self.patterns(kind))
        if kind not in PLAIN:
            raise ScopeError(f"{kind!r} is no kind of scope. {KNOWN}")
        # Whoever may see arguments may see whose they are.
        return kind in self.texts or (kind == "read" and "read_arguments" in self.texts)

    def patterns(self, kind: str) -> tuple[str, ...]:
        """The names that a kind is allowed for: exact ones, prefixes, or ``*``."""
        prefix = f"{kind}:"
        found = (text for text in self.texts if text.startswith(prefix))
        return tuple(text.removeprefix(prefix) for text in found)


def _covers(pattern: str, name: str) -> bool:
    if pattern.endswith(EVERYTHING):
        return name.startswith(pattern[:-1])
    return name == pattern


def _is_scope(text: str) -> bool:
    try:
        return _in_full(text) == text
    except ScopeError:
        return False


def _in_full(text: str) -> str:
    kind, colon, name = text.partition(":") if isinstance(text, str) else ("", "", "")
    if kind in PLAIN and not colon:
        return kind
    if kind not in NAMED:
        raise ScopeError(f"{_shown(text)} is no scope. {KNOWN}")
    name = name if colon else EVERYTHING
    if problem := _problem(name):
        raise ScopeError(f"{_shown(text)} is no scope: {problem} {KNOWN}")
    return f"{kind}:{name}"


def _problem(name: str) -> str:
    if not name or len(name) > MOST_LETTERS:
        return f"a name has 1 to {MOST_LETTERS} characters."
    if EVERYTHING in name[:-1]:
        return "a * stands at the end of a name, or nowhere."
    # They are stored with spaces between them.
    if not name.isprintable() or any(letter.isspace() for letter in name):
        return "a name in it has no spaces; write what stands before the first, and *."
    return ""


def _shown(text: object) -> str:
    shown = repr(text)
    return shown if len(shown) <= MOST_LETTERS else f"{shown[:MOST_LETTERS]}…"
