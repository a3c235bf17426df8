"""Runs first inside a container, as the text of ``python -c``: takes the archive from standard input, and starts it.

Arguments: the archive's size, its SHA-256, the folder to try last, the interpreters to try first (separated by
colons), the payload's configuration as JSON, and the name of the run, which marks every record. It tells its process
group, so that it can be ended, then the folder it made; when it fails it says why. Else it becomes the payload's
supervisor, in the same process, with the same standard input.

It must run on any Python: what is found first may be Python 2, and a newer one beside it.
"""

import sys

# ``-c`` looks for modules in the working folder first: a ``random.py`` of the user's there is not Python's.
sys.path[:] = [folder for folder in sys.path if folder not in ("", ".")]

import hashlib  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402

LOWEST = (3, 8)
PLACES = ("/tmp", "/dev/shm")  # noqa: S108
INTERPRETERS = (
    "python3",
    "python",
    "/opt/conda/bin/python",
    "/usr/local/bin/python3",
    "/opt/venv/bin/python",
    "/venv/bin/python",
    "/opt/miniconda3/bin/python",
    "/root/miniconda3/bin/python",
    "/usr/bin/python3",
)
LOOK = (
    "import sys; sys.path[:] = [f for f in sys.path if f not in ('', '.')]; import importlib.util as u; "
    "sys.exit(9 if sys.version_info < (3, 8) else 0 if u.find_spec('torch') else 8)"
)


def tell(**facts):
    """Write one record."""
    sys.stdout.write("\x1e" + json.dumps(dict(facts, t="boot", run=sys.argv[6])) + "\n")
    sys.stdout.flush()


def fail(why, **facts):
    """Tell why it goes no further, and end."""
    tell(why=why, **facts)
    sys.exit(4)


def read_input(count):
    """Exactly ``count`` bytes of standard input, unbuffered: what follows is not ours to read."""
    parts = []
    while count:
        part = os.read(0, min(count, 1 << 16))
        if not part:
            fail("cut-off")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def place(data, sha256, last):
    """Write ``data`` into a new folder at the first place that takes it and gives it back; the archive's path."""
    tried = []
    for parent in PLACES + ((last,) if last else ()):
        folder = ""
        try:
            folder = tempfile.mkdtemp(prefix="gpuconsole-check-", dir=parent)
            path = os.path.join(folder, "payload.pyz")
            with open(path, "wb") as archive:
                archive.write(data)
                archive.flush()
                os.fsync(archive.fileno())
            with open(path, "rb") as archive:
                if hashlib.sha256(archive.read()).hexdigest() == sha256:
                    return path
            tried.append("%s: it came back different" % parent)
        except (IOError, OSError) as error:
            tried.append("%s: %s" % (parent, error.strerror or error))
        if folder:
            remove(folder)
    return fail("no-place", tried=tried)


def remove(folder):
    """Remove our folder."""
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def interpreters(first):
    """Paths to try, each once, in order: those asked for, the active environments, then the usual places."""
    names = [name for name in first.split(":") if name]
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if os.environ.get(variable):
            names.append(os.path.join(os.environ[variable], "bin", "python"))
    names.extend(INTERPRETERS)
    names.extend((os.path.join(os.getcwd(), ".venv", "bin", "python"), sys.executable))
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    paths = []
    for name in names:
        for path in [name] if os.path.sep in name else [os.path.join(folder, name) for folder in folders]:
            if path not in paths and os.path.isfile(path) and os.access(path, os.X_OK):
                paths.append(path)
    return paths


def choose(first):
    """The first interpreter that is new enough and finds torch; else the first that is new enough."""
    fallback, old = "", []
    with open(os.devnull, "r+b") as null:
        for path in interpreters(first):
            try:
                code = subprocess.call([path, "-c", LOOK], stdin=null, stdout=null, stderr=null)
            except (IOError, OSError):
                continue
            if code == 0:
                return path
            if code == 8:
                fallback = fallback or path
            elif code in (1, 9):  # Python 2 has no importlib.util and ends with 1
                old.append(path)
    return fallback or fail("no-python", old=old)


def main():
    """Do it all, and become the supervisor."""
    size, sha256, last, first, config = sys.argv[1:6]
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
    tell(pgid=os.getpid(), python=sys.executable)
    data = read_input(int(size))
    if hashlib.sha256(data).hexdigest() != sha256:
        fail("damaged")
    python = choose(first)
    path = place(data, sha256, last)
    tell(folder=os.path.dirname(path))
    told = json.loads(config)
    told.update(archive=path, folder=os.path.dirname(path))
    try:
        os.execv(python, [python, "-S", path, "supervise", json.dumps(told)])  # noqa: S606
    except OSError as error:
        remove(os.path.dirname(path))
        fail("no-start", error=str(error), python=python)


if __name__ == "__main__":
    main()
