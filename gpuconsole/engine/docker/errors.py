"""An engine's error text made plain."""

from __future__ import annotations

import re

from gpuconsole.core.text import plain

_ESCAPES = (("\\\\", "\\"), ('\\"', '"'), ("\\n", "\n"), ("\\t", " "))
_HOOK_CLAUSE = re.compile(r"nvidia-container-cli: [a-z ]+ error: [^\n]*")
_MODE = re.compile(r"^\s*Auto-detected mode as '[^']*'\s*")
_TAIL = re.compile(r"""(?:[:.]?\s*unknown\.?|\.?\s*See '(?:docker|podman) [a-z ]*--help'\.?)["'\s]*$""")
_WRAPPERS = re.compile(
    r"""^(?:
        (?:docker:\ )?(?:Error\ response\ from\ daemon|Error):\s
      | failed\ to\ (?:create\ task\ for\ container|create\ shim\ task|start\ container(?:\ "?[0-9a-f]+"?)?):\s
      | failed\ to\ set\ up\ container\ networking:\s
      | driver\ failed\ programming\ external\ connectivity\ on\ endpoint\ \S+(?:\ \([0-9a-f]+\))?:\s
      | Error\ starting\ userland\ proxy:\s
      | (?:OCI\ runtime\ (?:create|exec|start)\ failed|(?:runc|crun)\ (?:create|exec|run)\ failed|exec\ failed):\s
      | (?:container|process|rootfs)_linux\.go:\d+:\s
      | (?:unable\ to\ start\ container\ process|starting\ container\ process\ caused|container\ init\ caused):?\s
      | (?:error\ during\ container\ init|caused|rpc\ error:\ code\ =\ \w+\ desc\ =):?\s
      | error\ mounting\ "[^"]*"\ to\ rootfs\ at\ "[^"]*":\s
      | (?:error\ running\ prestart\ hook|running\ prestart\ hook|error\ running\ hook|Running\ hook)\ ?\#?\d+:+\s?
        (?=\S*\s*\S)
      | "(?=(?:process|container)_linux\.go)
    )""",
    re.VERBOSE,
)


def clean_daemon_error(text: str) -> str:
    """The clause of an engine's error that says what is wrong, on one line.

    Engines wrap it in the names of every part it passed through, with quotes escaped up to eight times by old ones;
    NVIDIA's hook puts it on its standard error, which arrives inside. Several errors joined by newlines stay, joined
    by ``; ``.
    """
    text = _unescaped(plain(text)).strip()
    if "stderr:" in text:
        text = _MODE.sub("", text.split("stderr:", 1)[1])
    clause = _HOOK_CLAUSE.search(text)
    if clause is not None:
        return _without_tail(clause[0])
    lines = []
    for line in text.splitlines():
        line = _without_tail(_without_wrappers(" ".join(line.split())))
        if line and line not in lines:
            lines.append(line)
    return "; ".join(lines)


def _unescaped(text: str) -> str:
    for _ in range(8):
        before = text
        for escaped, char in _ESCAPES:
            text = text.replace(escaped, char)
        if text == before:
            break
    return text


def _without_wrappers(line: str) -> str:
    while match := _WRAPPERS.match(line):
        line = line[match.end() :]
    return line


def _without_tail(line: str) -> str:
    line = " ".join(line.split())
    while match := _TAIL.search(line):
        line = line[: match.start()]
    line = line.rstrip(" .\\")
    # What is left of the escaping around it.
    while line.endswith('"') and line.count('"') % 2:
        line = line[:-1].rstrip(" .\\")
    return line
