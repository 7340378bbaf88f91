"""Django's own tests of tasks, taken from its source distribution.

Nothing of them is kept in this repository. The archive is fetched once, into the
cache of the checkout, where every test run finds it.
"""

import fcntl
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "django-sdist"
ARCHIVES = "[dD]jango-6.1*.tar.gz"
SECONDS_TO_FETCH = 240

PIP_DOWNLOAD = [
    *(sys.executable, "-m", "pip", "download", "--quiet"),
    *("--no-deps", "--no-binary", ":all:"),
    # Django 6.1 asks for a newer Python than this may be; its tests do not.
    "--ignore-requires-python",
    "django==6.1.*",
]


class FetchError(RuntimeError):
    """Django's source distribution cannot be had."""


def django_tests() -> dict[str, str]:
    """Return the text of each file of Django's tests of tasks, by its name."""
    with tarfile.open(_archive()) as archive:
        members = [each for each in archive.getmembers() if _is_wanted(each)]
        files = {Path(each.name).name: archive.extractfile(each) for each in members}
        return {name: file.read().decode() for name, file in files.items() if file}


def _is_wanted(member: tarfile.TarInfo) -> bool:
    path = Path(member.name)
    return path.parts[1:-1] == ("tests", "tasks") and path.suffix == ".py"


def _archive() -> Path:
    CACHE.mkdir(parents=True, exist_ok=True)
    with _locked():
        if not any(CACHE.glob(ARCHIVES)):
            _fetch()
        return max(CACHE.glob(ARCHIVES))


@contextmanager
def _locked() -> Iterator[None]:
    # The cells of the matrix run side by side and share the cache.
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch() -> None:
    with TemporaryDirectory(dir=CACHE) as folder:
        _download(folder)
        found = list(Path(folder).glob(ARCHIVES))
        if not found:
            raise FetchError("pip succeeded but left no archive of Django 6.1.")
        # Moved when complete: an interrupted download must not pass for an archive.
        found[0].rename(CACHE / found[0].name)


def _download(folder: str) -> None:
    command = [*PIP_DOWNLOAD, "--dest", folder]
    try:
        subprocess.run(
            command,
            check=True,
            timeout=SECONDS_TO_FETCH,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    except subprocess.SubprocessError as error:
        raise FetchError(
            "Django's tests could not be fetched: a package index is needed, or the "
            f"source distribution of Django 6.1 in {CACHE}.\n{error.output or error}"
        ) from None
