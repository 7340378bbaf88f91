"""The documentation is true: its examples run, its commands exist.

A page is run from top to bottom in a fresh namespace. A block that begins with the
name of a file, such as ``# shop/tasks.py``, becomes that module, so that later blocks
can import from it. Settings are judged instead of put in force. Test cases in a page
are run as well. What cannot run is marked, right above, by
``<!-- not run: reason -->``; it must at least compile.
"""

import ast
import doctest
import os
import re
import shlex
import subprocess
import sys
import textwrap
import unittest
from collections.abc import Iterator
from dataclasses import dataclass, replace
from inspect import isfunction
from itertools import groupby
from pathlib import Path
from types import ModuleType

import django
import pytest
from django.core.management import get_commands
from django.utils.module_loading import import_string

import robust_queue
from robust_queue import configuration, recurrence, registry
from robust_queue.arguments import classes
from robust_queue.backend import RobustQueueBackend
from robust_queue.models import Job
from tests.settings import KIND
from tests.support.receivers import OURS, receivers_kept

ROOT = Path(__file__).resolve().parent.parent
TUTORIAL = ROOT / "docs/tutorial/first-task.md"
EXAMPLE = ROOT / "example_project/README.md"
PAGES = [
    ROOT / "README.md",
    EXAMPLE,
    *sorted(set(ROOT.glob("docs/**/*.md")) - set(ROOT.glob("docs/_build/**/*.md"))),
]

FENCED = re.compile(
    r"(?:<!-- not run: (?P<not_run>.+?) -->\s*?\n)?"
    r"^(?P<indent> *)(?P<fence>`{3,})(?P<language>\w+)\n"
    r"(?P<code>.*?)^(?P=indent)(?P=fence) *$",
    re.MULTILINE | re.DOTALL,
)
FILE = re.compile(r"# ([\w/]+\.py)\n")
COMMAND = re.compile(r"\b(manage\.py|make) ([a-z][\w-]*)")
SESSION = (
    "import doctest, sys;"
    "sys.exit(doctest.testfile('session.txt', module_relative=False).failed)"
)
SETTINGS = {"DATABASES", "DATABASE_ROUTERS", "INSTALLED_APPS", "ROBUST_QUEUE", "TASKS"}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page."""

    language: str
    code: str
    line: int
    not_run: str | None

    @property
    def file(self) -> str | None:
        found = FILE.match(self.code)
        return found[1] if found else None

    @property
    def is_session(self) -> bool:
        return self.code.startswith(">>> ")

    @property
    def is_settings(self) -> bool:
        if self.file:
            return self.file.endswith("settings.py")
        names = {ast.unparse(t) for n in self._assignments for t in n.targets}
        return bool(names) and names <= SETTINGS

    @property
    def _assignments(self) -> list[ast.Assign]:
        body = ast.parse(self.code).body
        return [node for node in body if isinstance(node, ast.Assign)]


def blocks_of(path: Path, *languages: str) -> Iterator[Block]:
    text = path.read_text()
    for found in FENCED.finditer(text):
        if found["language"] in languages:
            line = text.count("\n", 0, found.start("code"))
            code = textwrap.dedent(found["code"])
            yield Block(found["language"], code, line, found["not_run"])


class Page:
    """A page that is being run."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        self.monkeypatch = monkeypatch
        self.modules: dict[str, ModuleType] = {}
        self.own = self.module(re.sub(r"\W", "_", name_of(path)))

    def run(self, block: Block) -> None:
        if block.not_run:
            self._compiled(block)
        elif block.is_session:
            self._run_session(block)
        elif block.is_settings:
            self._judge_settings(block)
        else:
            exec(self._compiled(block), vars(self._home(block)))  # noqa: S102

    def run_tests(self) -> None:
        for module in self.modules.values():
            for value in list(vars(module).values()):
                if getattr(value, "__module__", None) == module.__name__:
                    _run_if_test(value)

    def module(self, name: str) -> ModuleType:
        """The module of that name, importable for as long as the page runs."""
        if name not in self.modules:
            module = self.modules[name] = ModuleType(name)
            module.__path__ = []
            self.monkeypatch.setitem(sys.modules, name, module)
            parent, _, child = name.rpartition(".")
            if parent:
                setattr(self.module(parent), child, module)
        return self.modules[name]

    def _home(self, block: Block) -> ModuleType:
        if block.file is None:
            return self.own
        return self.module(block.file.removesuffix(".py").replace("/", "."))

    def _compiled(self, block: Block):
        # Moved down, so that a traceback names the line of the page.
        code = "\n" * block.line + self._for_this_django(block.code)
        return compile(code, str(self.path), "exec")

    def _run_session(self, block: Block) -> None:
        code = self._for_this_django(block.code)
        name, line = name_of(self.path), block.line
        test = doctest.DocTestParser().get_doctest(code, {}, name, name, line)
        test.globs = vars(self.own)
        report: list[str] = []
        runner = doctest.DocTestRunner(verbose=False)
        runner.run(test, out=report.append, clear_globs=False)
        assert not report, "".join(report)

    def _judge_settings(self, block: Block) -> None:
        found = {"INSTALLED_APPS": [], "DATABASES": {"default": {}}}
        exec(self._compiled(block), found)  # noqa: S102
        for alias, entry in found.get("TASKS", {}).items():
            if issubclass(import_string(entry["BACKEND"]), RobustQueueBackend):
                configuration.backend_options(alias, entry.get("OPTIONS", {}))
        for dotted in found.get("DATABASE_ROUTERS", []):
            import_string(dotted)
        with django.test.override_settings(ROBUST_QUEUE=found.get("ROBUST_QUEUE")):
            assert configuration.problems() == []

    @staticmethod
    def _for_this_django(code: str) -> str:
        if django.VERSION >= (6, 0):
            return code
        return code.replace("django.tasks", "django_tasks")


def _run_if_test(value: object) -> None:
    if isinstance(value, type) and issubclass(value, unittest.TestCase):
        Job.objects.all().delete()
        outcome = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(value).run(outcome)
        assert outcome.wasSuccessful(), outcome.failures + outcome.errors
    elif isfunction(value) and value.__name__.startswith("test_"):
        Job.objects.all().delete()
        value()


@pytest.fixture
def isolated(monkeypatch):
    """What a page declares or assigns is forgotten when it has been run."""
    monkeypatch.setattr(registry, "_declared", registry.declared())
    monkeypatch.setattr(recurrence, "_declared", [])
    monkeypatch.setattr(classes, "_storable", dict(classes._storable))
    before = dict(vars(robust_queue))
    with receivers_kept(*OURS):
        yield
    for name in configuration.MODULE_SETTINGS:
        vars(robust_queue).pop(name, None)
    vars(robust_queue).update(before)


@pytest.mark.usefixtures("isolated")
@pytest.mark.django_db(transaction=True, databases=["default", "other"])
# The tutorial needs its commands in between: it is followed below.
@pytest.mark.parametrize("path", [p for p in PAGES if p != TUTORIAL], ids=name_of)
def test_the_examples_run(path, monkeypatch):
    page = Page(path, monkeypatch)
    for block in blocks_of(path, "python", "pycon"):
        page.run(block)
    page.run_tests()


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_the_commands_exist(path):
    """Or are only mentioned where the paragraph says that they are planned."""
    makefile = (ROOT / "Makefile").read_text()
    known = {
        "manage.py": {*get_commands(), *_commands_of_the_example()},
        "make": set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE)),
    }
    for paragraph in re.split(r"\n\s*\n", path.read_text()):
        for program, name in COMMAND.findall(_code_in(paragraph)):
            if "planned" not in paragraph.lower():
                assert name in known[program], f"{program} {name}"


def _commands_of_the_example() -> set[str]:
    folder = ROOT / "example_project/shop/management/commands"
    return {path.stem for path in folder.glob("[!_]*.py")}


def _code_in(paragraph: str) -> str:
    typed = re.findall(r"^\s*\$ (.+)$", paragraph, re.MULTILINE)
    return "\n".join([*typed, *re.findall(r"`([^`\n]+)`", paragraph)])


def _run(command: list[str], folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    # Its own settings, not those of the tests.
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_tutorial_works_as_it_is_written(tmp_path):
    """Each command, file and session in turn, in an empty folder."""
    folder = tmp_path
    blocks = blocks_of(TUTORIAL, "console", "python", "pycon")
    for language, run in groupby(blocks, key=lambda block: block.language):
        for block in _joined(run) if language == "pycon" else run:
            folder = _follow(block, folder)


def _joined(blocks: Iterator[Block]) -> list[Block]:
    """One session out of those between which the shell was not left."""
    first, *others = blocks
    return [replace(first, code="".join([first.code, *(b.code for b in others)]))]


def _follow(block: Block, folder: Path) -> Path:
    """Do what the block says; return the folder it has led to."""
    if block.language == "console":
        return _type(block.code, folder)
    if block.is_session:
        (folder / "session.txt").write_text(block.code)
        _run(["manage.py", "shell", "-c", SESSION], folder)
    else:
        with (folder / block.file).open("a") as file:
            file.write("\n\n" + block.code)
    return folder


def _type(console: str, folder: Path) -> Path:
    output = ""
    for line in console.splitlines():
        match shlex.split(line):
            case ["$", _, "-m", "pip" | "venv", *_]:
                pass
            case ["$", "python", "manage.py", "shell"]:
                pass  # the session that follows
            case ["$", "cd", name]:
                folder = folder / name
            case ["$", "python", *arguments]:
                output = _run(arguments, folder)
            case _:
                assert line in output
    return folder


@pytest.mark.skipif(
    KIND != "sqlite" or django.VERSION < (6, 1) or bool(os.environ.get("CI")),
    reason="the demonstration brings its own SQLite, and takes long; CI has it apart",
)
def test_the_demonstration_goes_as_it_should(monkeypatch):
    monkeypatch.setenv("DEMO_EXIT", "1")
    output = _run(["-W", "error", "manage.py", "demo"], ROOT)
    assert "All of it went as it should." in output
