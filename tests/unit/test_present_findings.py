"""What is said beside the launch form's fields: all of it, somewhere, whatever the room; a change made in a text."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gpuconsole.launch.changes import Change, changed
from gpuconsole.launch.options import LaunchOptions
from gpuconsole.launch.preflight import Finding, Severity, examine
from gpuconsole.launch.spec import FieldProblem, Force
from gpuconsole.tui.keymap import USUAL, Keymap
from gpuconsole.tui.present.launchfindings import (
    Remark,
    Said,
    arranged,
    below_lines,
    change_words,
    remarks_of,
    to_force,
    to_mend,
)
from gpuconsole.tui.present.launchform import MORE, ROWS
from gpuconsole.tui.present.launchmending import field_writing, text_after
from gpuconsole.tui.present.launchtext import Lines
from gpuconsole.tui.present.launchtyped import Ticks, options_of, texts_of
from gpuconsole.tui.theme import ASCII, UNICODE, Glyphs
from tests.unit.test_preflight import CASES
from tests.unit.test_preflight_machine import CASES as MACHINE

EVERY = [finding for fires, _ in (*CASES.values(), *MACHINE.values()) for facts in fires for finding in examine(facts)]
"""What every rule says."""
WRONG = (FieldProblem("--memory", "'much' is no size"), FieldProblem("--volume", "/nowhere is not there"))


def said(
    remarks: Sequence[Remark], *, width: int = 68, room: int = 4, each: int = 2, more: bool = False,
    here: str | None = None, glyphs: Glyphs = UNICODE, keys: Keymap = USUAL,
) -> Said:  # fmt: skip
    return arranged(
        remarks, (*ROWS, *MORE), glyphs=glyphs, keys=keys, width=width, room=room, each=each, more=more, here=here
    )


def words(lines: Lines) -> str:
    return " ".join(" ".join("".join(cell.text for cell in line) for line in lines).split())


def squeezed(text: str) -> str:
    """Without what a narrow line changes: where a word is broken."""
    return "".join(text.rstrip(".").split())


@pytest.mark.parametrize("width", [20, 40, 68, 108, 188])
@pytest.mark.parametrize(("room", "each"), [(0, 1), (4, 2), (14, 3)])
@pytest.mark.parametrize("more", [False, True])
def test_all_of_it_is_told_somewhere_and_no_line_is_too_long(width: int, room: int, each: int, *, more: bool) -> None:
    for remark in remarks_of(WRONG, EVERY):
        found = said((remark,), width=width, room=room, each=each, more=more)
        beside = [line for lines in found.beside.values() for line in lines]
        assert len(beside) <= max(1, each)
        if width >= 40:
            assert max((sum(len(cell.text) for cell in line) for line in beside), default=0) < width
        below = below_lines(found.below, UNICODE, USUAL, width)
        told = words([*beside, *below])
        assert squeezed(remark.sentence) in squeezed(told), told
        if remark.change is None:
            assert squeezed(remark.fix) in squeezed(told)
        else:
            assert "F7" in told
        assert ("F9" in told) == remark.forceable
        if remark.stands and not (remark.rarely_needed and not more) and remark.field is not None:
            assert beside, "what is in the way stands beside its field however little room there is"


def test_what_is_in_the_way_comes_first_and_the_field_in_focus_before_the_rest() -> None:
    found = remarks_of(WRONG, EVERY)
    assert [each.stands for each in found] == sorted((each.stands for each in found), reverse=True)
    shown = said(found, room=4, here="shm")
    assert set(shown.beside) >= {"volumes"}
    warned = [each for each in found if not each.stands]
    assert list(said(warned, room=1, each=1, here="shm").beside) == ["shm"]
    assert list(said(warned, room=1, each=1).beside) != ["shm"]


def test_rows_that_are_hidden_say_nothing_and_their_remarks_stand_below_with_the_fields_name() -> None:
    (remark,) = remarks_of((), [Finding("memory-limit", Severity.HINT, "--memory", "Too much.", "Less.")])
    closed = said((remark,))
    assert not closed.beside
    assert words(below_lines(closed.below, UNICODE, USUAL, 80)) == "· Memory: Too much. Less."
    opened = said((remark,), more=True)
    assert words(opened.beside["memory"]) == "· Memory: Too much. Less", "one of several fields of its row"
    assert opened.below == ()
    (foreign,) = remarks_of((), [Finding("x", Severity.WARN, "--nothing-of-it", "So.")])
    assert words(below_lines(said((foreign,)).below, UNICODE, USUAL, 80)) == "◆ --nothing-of-it: So."


def test_each_severity_has_a_sign_and_a_tone_of_its_own_in_ascii_too() -> None:
    kinds = [Finding("a", severity, "--gpus", f"{severity}.") for severity in Severity]
    for glyphs in (UNICODE, ASCII):
        lines = said(remarks_of((), kinds), room=9, glyphs=glyphs).beside["gpus"]
        assert len({line[0].text.split()[0] for line in lines}) == 3
        assert [line[0].tone for line in lines] == ["critical", "watch", "dim"]
    assert "".join(cell.text for line in lines for cell in line).isascii()


def test_what_is_forced_is_said_as_that_and_is_in_no_way() -> None:
    finding = Finding("dangerous-mount", Severity.REFUSE, "--volume", "It would.", "Do not.", forceable=True)
    (remark,) = remarks_of((), [finding])
    assert (remark.stands, remark.forceable) == (True, True)
    assert "Press F9 if" in remark.text
    assert "--force" not in remark.text
    (lifted,) = remarks_of((), [finding], frozenset((Force.DANGEROUS_MOUNT,)))
    assert (lifted.stands, lifted.forceable, lifted.forced) == (False, False, True)
    assert words(said((lifted,)).beside["volumes"]).endswith("forced")
    assert "--force" not in lifted.text
    never = Finding("name-taken", Severity.REFUSE, "--name", "It is taken.")
    (stays,) = remarks_of((), [never], ("name-taken",))
    assert stays.stands


def test_keys_of_the_users_own_are_named() -> None:
    finding = Finding("a", Severity.REFUSE, "--user", "So.", "", Change("user", "me"), forceable=True)
    own = Keymap.written({"launch.mend": ("^x",), "launch.force": ("f12",)})
    assert words(said(remarks_of((), [finding]), keys=own).beside["shm"]).endswith("^x writes me · F12 forces it")


def test_the_field_in_focus_is_mended_first_else_what_is_most_important() -> None:
    shm = Finding("shm-size", Severity.WARN, "--shm-size", "Small.", "", Change("shm_size", None))
    taken = Finding("name-taken", Severity.REFUSE, "--name", "Taken.", "", Change("name", None))
    plain = Finding("dangerous-mount", Severity.REFUSE, "--volume", "No.", forceable=True)
    found = remarks_of((), [shm, taken, plain])
    for key, slug in (("shm", "shm-size"), ("name", "name-taken"), ("volumes", "name-taken"), (None, "name-taken")):
        one = to_mend(found, key)
        assert one is not None
        assert one.slug == slug
    lifted = to_force(found, "shm")
    assert lifted is not None
    assert lifted.slug == "dangerous-mount"
    assert to_mend((), "shm") is None
    assert to_force(remarks_of((), [shm]), None) is None


def test_what_outside_said_stays_text() -> None:
    hostile = "a\x1b[31m\n[red]b\u202e\x9b2J."
    found = remarks_of(
        (FieldProblem("--name", hostile),),
        [Finding("x", Severity.WARN, "--name", hostile, hostile, Change("name", hostile)),
         Finding("x", Severity.WARN, "--publish", hostile, hostile, Change("ports", None, instead=hostile))],
    )  # fmt: skip
    arrangement = said(found, room=20, each=3)
    lines = [line for each in arrangement.beside.values() for line in each]
    lines += below_lines(arrangement.below, UNICODE, USUAL, 80)
    text = "".join(cell.text for line in lines for cell in line)
    assert "[red]b" in text
    assert text.isprintable()
    assert all(change_words(each.change).isprintable() for each in found if each.change)


@pytest.mark.parametrize(
    ("key", "before", "change", "after"),
    [
        ("gpus", "auto", Change("gpus", "device=1"), "device=1"),
        ("shm", "64m", Change("shm_size", None), ""),
        ("entrypoint", "", Change("entrypoint", ""), "''"),
        ("privileged", "yes", Change("privileged", None), ""),
        ("environment", "A='x  y'  B=2", Change("environment", "C=3 4", add=True), "A='x  y'  B=2 'C=3 4'"),
        ("environment", "", Change("environment", "C=3", add=True), "C=3"),
        ("environment", "A=1 B=2", Change("environment", "B=2", add=True), "A=1 B=2"),
        ("environment", "A=1 B=2 C=3", Change("environment", None, instead="B=2"), "A=1 C=3"),
        ("environment", "A=1", Change("environment", None, instead="gone"), "A=1"),
        ("environment", "A='1", Change("environment", "B=2", add=True), "A='1"),
        ("ports", "80 81:81", Change("ports", "82:81", instead="81:81"), "80 82:81"),
        ("ports", "80 81", Change("ports", None), ""),
        ("volumes", "./a b:/a\n~:/h", Change("volumes", "~:/h:ro", instead="~:/h"), "./a b:/a\n~:/h:ro"),
        ("volumes", "", Change("volumes", ".:/workspace", add=True), ".:/workspace"),
        ("force", "privileged", Change("force", "disk-space", add=True), "privileged disk-space"),
    ],
)
def test_a_change_is_made_in_the_text(key: str, before: str, change: Change, after: str) -> None:
    field = field_writing(change.option)
    assert field is not None
    assert field.key == key
    assert text_after(field, before, change) == after


def test_every_change_of_every_rule_made_in_the_form_is_that_change() -> None:
    held = LaunchOptions(
        "a/b:latest", command=("python", "-c", "print(1)"), entrypoint="x", name="n", gpus="2", gpu_path="cdi",
        volumes=("./a b:/data",), ports=("1:1",), environment=("A=1 2",), user="root", shm_size="64m", ipc="none",
        memory="1g", ulimits=("memlock=1",), restart="always", privileged=True,
    )  # fmt: skip
    typed = texts_of(held).typed
    changes = {finding.change for finding in EVERY if finding.change is not None}
    assert len({change.option for change in changes}) >= 10
    for change in changes:
        field = field_writing(change.option)
        assert field is not None, change
        text = text_after(field, typed.get(field.key, ""), change)
        options, problems = options_of({**typed, field.key: text}, Ticks(), uuids={})
        assert problems == ()
        assert options == changed(held, change), change
