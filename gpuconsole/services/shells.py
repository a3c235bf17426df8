"""The command that gives a person a shell, in whatever image."""

from __future__ import annotations

# The name of the terminal comes from outside. An image that does not know it would draw nonsense, so there it gets
# the name every terminal of today answers to.
_SCRIPT = """
for folder in /etc/terminfo /lib/terminfo /usr/share/terminfo /usr/lib/terminfo /opt/conda/share/terminfo; do
  [ -e "$folder/${TERM%"${TERM#?}"}/$TERM" ] && known=1
done
[ -n "$known" ] || TERM=xterm-256color
export TERM
unset folder known
command -v bash >/dev/null 2>&1 && exec bash
exec sh
"""

COMMAND = ("sh", "-c", _SCRIPT)
"""bash where there is one, else sh."""
PIPED = ("sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash; exec sh")
"""The same without a terminal."""


def terminal_environment(term: str | None, colors: str | None) -> dict[str, str]:
    """Variables for a shell in a terminal like ours.

    Args:
        term: ``TERM`` out here.
        colors: ``COLORTERM`` out here.
    """
    found = {"TERM": term if term and term.isprintable() and " " not in term and "/" not in term else "xterm-256color"}
    return found | ({"COLORTERM": colors} if colors and colors.isalnum() else {})
