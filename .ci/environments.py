"""Virtual environments of the checkout: one for each pair of Python and Django."""

import fcntl
import hashlib
import subprocess
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import interpreters
import packages
from checkout import CACHE, ROOT, VENVS, DevError


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment under `.venv/`, and what is pinned in it."""

    name: str
    version: interpreters.Version
    pin: str = ""
    requirements: str = ""
    # What its tests need beside what all tests need.
    test_extra: str = ""

    @property
    def folder(self) -> Path:
        """Where this environment lives."""
        return VENVS / self.name

    @property
    def python(self) -> str:
        """The interpreter inside this environment."""
        return self.program("python")

    def program(self, name: str) -> str:
        """Return the path of a program installed in this environment."""
        return str(self.folder / "bin" / name)


MATRIX = (
    Environment("py311-django52", (3, 11), "Django~=5.2.0"),
    Environment("py312-django60", (3, 12), "Django~=6.0.0"),
    Environment("py313-django61", (3, 13), "Django~=6.1.0", test_extra="browser,fuzz"),
)
NEWEST = MATRIX[-1]
BENCH = Environment(
    "bench", (3, 13), "Django~=6.1.0", requirements="benchmarks/requirements.txt"
)


def build(environments: Iterable[Environment], *, extra: str) -> None:
    """Build what is stale among environments, with the tools to compile drivers."""
    stale = [each for each in environments if not _is_current(each, extra)]
    _prepare_to_compile(stale)
    with ThreadPoolExecutor(max_workers=2) as executor:
        list(executor.map(lambda each: ensure(each, extra=extra), stale))


def ensure(environment: Environment, *, extra: str = "") -> None:
    """Create the environment and install the checkout, unless that is done already."""
    with _locked(environment):
        if not _runs(environment):
            _create(environment)
        if not _is_current(environment, extra):
            _install(environment, extra)


def is_possible(environment: Environment) -> bool:
    """Tell whether the environment exists, or could."""
    return _runs(environment) or environment.version in interpreters.found()


def lack(environment: Environment) -> str:
    """Say why an environment is not possible."""
    version = ".".join(map(str, environment.version))
    return f"{environment.name}: no working Python {version} (with venv, sqlite3, ssl)."


def _prepare_to_compile(stale: list[Environment]) -> None:
    if not stale:
        return
    headers = [packages.python_headers(each.version) for each in stale]
    # Not the end: pip may have a compiled driver in its cache.
    for missing in packages.install_missing([*packages.COMPILER, *headers]):
        print(f"mysqlclient may not compile: {packages.in_words(missing)}", flush=True)


@contextmanager
def _locked(environment: Environment) -> Iterator[None]:
    # `make lint` beside `make test` must not install into one folder at once.
    VENVS.mkdir(exist_ok=True)
    with (VENVS / f"{environment.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _runs(environment: Environment) -> bool:
    settings = environment.folder / "pyvenv.cfg"
    # Its programs name their own folder, so an environment does not survive a move.
    if not settings.exists() or str(environment.folder) not in settings.read_text():
        return False
    return packages.succeeds([environment.python, "-c", "import pip"])


def _create(environment: Environment) -> None:
    python = interpreters.found().get(environment.version)
    if python is None:
        raise DevError(lack(environment))
    _logged(environment, [python, "-m", "venv", "--clear", str(environment.folder)])


def _install(environment: Environment, extra: str) -> None:
    started = time.monotonic()
    print(f"{environment.name}: installing ...", flush=True)
    extras = _extras(environment, extra)
    checkout = f"{ROOT}[{extras}]" if extras else str(ROOT)
    pip = [environment.python, "-m", "pip", "install", "--quiet"]
    pins = [*environment.pin.split(), *_listed(environment)]
    _logged(environment, [*pip, "--editable", checkout, *pins])
    _stamp(environment, extra).write_text(_fingerprint(environment))
    seconds = time.monotonic() - started
    print(f"{environment.name}: installed in {seconds:.0f} s", flush=True)


def _extras(environment: Environment, extra: str) -> str:
    is_more = extra == "test" and environment.test_extra
    return f"{extra},{environment.test_extra}" if is_more else extra


def _listed(environment: Environment) -> list[str]:
    file = environment.requirements
    return ["--requirement", str(ROOT / file)] if file else []


def _is_current(environment: Environment, extra: str) -> bool:
    stamp = _stamp(environment, extra)
    if not stamp.exists() or not _runs(environment):
        return False
    return stamp.read_text() == _fingerprint(environment)


def _stamp(environment: Environment, extra: str) -> Path:
    return environment.folder / f"installed-{extra or 'plain'}"


def _fingerprint(environment: Environment) -> str:
    files = filter(None, ["pyproject.toml", environment.requirements])
    texts = [environment.pin, *((ROOT / file).read_text() for file in files)]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _logged(environment: Environment, command: list[str]) -> None:
    CACHE.mkdir(exist_ok=True)
    path = CACHE / f"{environment.name}-install.log"
    with path.open("w") as log:
        code = subprocess.call(command, cwd=ROOT, stdout=log, stderr=log)
    if code:
        print(path.read_text(errors="replace"), flush=True)
        step = " ".join(command[1:4])
        raise DevError(f"{environment.name}: {step} failed, its output is above.")
