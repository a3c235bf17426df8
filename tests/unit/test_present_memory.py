"""Where a GPU's memory is, as the console shows it: whatever is known of it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.gpu.model import Gpu, Mig
from gpuconsole.host.account import Account, MemoryOf, Part, PartKind
from gpuconsole.host.accounting import NOBODY, SystemMemory, account_in, account_of
from gpuconsole.host.model import GpuView, Holder
from gpuconsole.host.processes import BLIND, BLIND_HINT, ENDED
from gpuconsole.tui.present import details, gpumemory, gpunow, process
from gpuconsole.tui.present.gpu import holders_cell, memory_cell, used_share
from gpuconsole.tui.theme import ASCII, UNICODE
from tests.unit.test_host_account import A, B, gpu, gpus, holder, holders_seen, holders_unseen, unseen

GIB = 2**30


def text_of(view: GpuView, width: int = 100) -> str:
    rows = details.laid_out([gpumemory.memory_field(view, width=width, glyphs=UNICODE)], width)
    return "\n".join("".join(cell.text for cell in row).rstrip() for row in rows)


def now_of(view: GpuView) -> str:
    rows = gpunow.now_rows(view, width=200, glyphs=UNICODE)
    return "\n".join("".join(cell.text for cell in row) for row in rows)


def command_of(one: Holder) -> str:
    place = [column.key for column in process.COLUMNS].index("command")
    return process.row(one, now=0).cells[place].text


def test_a_container_stands_above_its_processes_and_what_nobody_has_below() -> None:
    holders = (
        holder(7, 20 * GIB, container_id=A, container_name="llama", command="python train.py"),
        holder(8, 10 * GIB, container_id=A, container_name="llama", command="python -m worker"),
        holder(9, 4 * GIB, container_id=B, user="mei", uid=1001, command="ipykernel"),
        holder(10, GIB, command="Xorg :0"),
    )
    lines = [line.split() for line in text_of(GpuView(gpu(), holders)).splitlines()]
    assert lines[0] == ["memory", "30.0", "G", "███", "llama,", "2", "processes"]
    assert lines[1] == ["20.0", "G", "7", "ada", "python", "train.py"]
    assert lines[2] == ["10.0", "G", "8", "ada", "python", "-m", "worker"]
    assert lines[3][-4:] == [f"{B[:12]}:", "9", "mei", "ipykernel"]
    assert lines[4][-6:] == ["outside", "containers:", "10", "ada", "Xorg", ":0"]
    assert " ".join(lines[5]).endswith(f"unattributed: {NOBODY}")
    assert " ".join(lines[6]).endswith("reserve of driver and firmware")
    assert lines[7][-1] == "free"


def test_what_is_true_of_all_hidden_processes_is_said_once() -> None:
    reason = f"{BLIND}; {BLIND_HINT}"
    text = " ".join(text_of(GpuView(gpu(), (unseen(7, GIB, reason), unseen(8, GIB, reason)))).split())
    assert text.count(BLIND) == 1
    assert "not to be seen here, 2 processes" in text
    assert "ended: 7 (" in text_of(GpuView(gpu(), (unseen(7, GIB, ENDED),)))
    assert command_of(unseen(7, GIB, reason)) == "–"
    assert command_of(unseen(7, GIB, ENDED)) == ENDED


def test_many_processes_are_counted_and_not_all_named() -> None:
    holders = tuple(holder(pid, GIB, container_id=A, container_name="many") for pid in range(10, 40))
    text = text_of(GpuView(gpu(), holders))
    assert "many, 30 processes" in text
    assert "24.0 G  in 24 more" in text
    held = gpumemory.processes_of(A, [GpuView(gpu(), holders)])
    assert "".join(cell.text for cell in held[-1]).split() == ["24.0", "G", "in", "24", "more"]
    assert gpumemory.processes_of(B, [GpuView(gpu(), holders)]) == []


def test_an_instance_is_named_where_it_matters() -> None:
    mig = Mig("MIG-1", "NVIDIA A100 MIG 3g.20gb", 2, 0, 20 * GIB, 9 * GIB)
    view = GpuView(gpu(migs=(mig,), memory_used_bytes=9 * GIB), (holder(7, 5 * GIB, mig_uuid="MIG-1"),))
    text = text_of(view)
    assert "7 in 3g.20gb #2 ada" in text
    assert "unattributed in 3g.20gb #2: " in text


def test_shared_memory_has_the_machines_figures_and_says_so() -> None:
    chip = Gpu(0, "GPU-0", "NVIDIA GB10", unified_memory=True)
    made = account_of(chip, (), why=str, system=SystemMemory(128 * GIB, 48 * GIB))
    view = GpuView(chip, account=made)
    assert gpumemory.shared_words(made) == "80 GiB of 128 GiB in use, 48 GiB to be had; shared with the CPU"
    assert gpumemory.shared_words(made) in now_of(view)
    assert "share the machine's memory" in text_of(view)
    assert memory_cell(view).text == "80.0/128.0"
    assert used_share(view) == 0.625
    assert memory_cell(GpuView(chip)).text == "unified"
    assert "no figures of its own" in now_of(GpuView(chip, account=account_of(chip, (), why=str)))


def test_a_gpu_of_a_recording_made_before_accounts_were_kept_has_one_all_the_same() -> None:
    assert NOBODY in text_of(replace(GpuView(gpu(), (holder(7, GIB),)), account=None))


def test_who_was_given_a_gpu_is_named_as_where_gpus_are_picked() -> None:
    assert holders_cell(GpuView(gpu(), given_to=("jupyter",))).text == "jupyter (idle)"
    assert holders_cell(GpuView(gpu())).text == "nobody", "it is held, and not free"
    assert holders_cell(GpuView(gpu(memory_used_bytes=0, memory_free_bytes=99 * GIB))).text == ""
    mine = holder(7, GIB, container_id=A, container_name="jupyter")
    assert holders_cell(GpuView(gpu(), (mine,), given_to=("jupyter", "other"))).text == "jupyter, other (idle)"


parts = st.builds(
    Part,
    st.sampled_from(list(PartKind)),
    st.integers(0, 2**45),
    st.lists(st.integers(1, 9), max_size=3).map(tuple),
    st.sampled_from([None, "MIG-0"]),
    st.none() | st.text(max_size=40),
).filter(lambda part: len(part.pids) == 1 or part.kind not in (PartKind.PROCESS, PartKind.HIDDEN, PartKind.ENDED))
accounts = st.none() | st.builds(
    Account, st.none() | st.integers(0, 2**45), st.sampled_from(list(MemoryOf)), st.lists(parts, max_size=5).map(tuple),
    st.lists(st.text(max_size=20), max_size=2).map(tuple), st.none() | st.text(max_size=20),
)  # fmt: skip


@given(gpus, st.lists(holders_seen | holders_unseen, max_size=6), accounts, st.integers(10, 200), st.booleans())
def test_anything_can_be_shown(
    card: Gpu, holders: list[Holder], account: Account | None, width: int, plain: bool
) -> None:
    view = GpuView(card, tuple(holders), account=account)
    field = gpumemory.memory_field(view, width=width, glyphs=ASCII if plain else UNICODE)
    assert field.lines or account is not None, "an account that adds up has something to show"
    assert bool(details.laid_out([field], width)) is bool(field.lines)
    gpumemory.shared_words(account_in(view))
