"""The store: kept between runs, shared between processes, replaced when damaged."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from gpuconsole.core.errors import BadFile
from gpuconsole.core.store import Store, damaged_file

SCHEMA = "CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL);"


def add(store: Store, text: str) -> None:
    with store.writing() as connection:
        connection.execute("INSERT INTO notes (text) VALUES (?)", (text,))


def texts(store: Store) -> list[str]:
    return [row["text"] for row in store.rows("SELECT text FROM notes ORDER BY id")]


def test_what_was_written_is_there_next_time(tmp_path: Path) -> None:
    first = Store(SCHEMA, path=tmp_path / "a/b/records.db")
    add(first, "kept")
    first.close()
    assert texts(Store(SCHEMA, path=tmp_path / "a/b/records.db")) == ["kept"]


def test_a_transaction_that_fails_leaves_nothing(tmp_path: Path) -> None:
    store = Store(SCHEMA, path=tmp_path / "records.db")

    def half() -> None:
        with store.writing() as connection:
            connection.execute("INSERT INTO notes (text) VALUES ('half')")
            raise KeyError

    with pytest.raises(KeyError):
        half()
    assert texts(store) == []


@pytest.mark.parametrize("damage", [b"this is no database at all, though long enough to be read as one" * 20, b""])
def test_a_damaged_file_is_set_aside_and_the_work_goes_on(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "records.db"
    path.write_bytes(damage)
    store = Store(SCHEMA, path=path)
    add(store, "after")
    assert texts(store) == ["after"]
    if damage:
        assert (tmp_path / "records.db.damaged").read_bytes() == damage


def test_damage_met_later_is_set_aside_once_and_the_next_try_works(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    first = Store(SCHEMA, path=path)
    for number in range(200):
        add(first, f"{number}" * 200)
    first.close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (path.stat().st_size - 4096))
    store, other = Store(SCHEMA, path=path), Store(SCHEMA, path=path)
    damaged = path.read_bytes()
    for each in (store, other):
        with pytest.raises(BadFile, match="are damaged: they were set aside"):
            texts(each)
    add(other, "after")
    assert texts(store) == texts(other) == ["after"]
    assert damaged_file(path).read_bytes() == damaged, "the second one did not set the new file aside"


def test_a_file_that_somebody_keeps_locked_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuconsole.core.store._BUSY_TIMEOUT_S", 0.01)
    path = tmp_path / "records.db"
    store = Store(SCHEMA, path=path)
    with sqlite3.connect(path) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(BadFile, match="another program keeps it locked") as caught:
            add(store, "x")
    assert "fuser" in (caught.value.hint or "")


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BadFile, match="cannot keep its records") as caught:
        Store(SCHEMA, path=tmp_path / "file/records.db")
    assert "XDG_STATE_HOME" in caught.value.hint


def test_several_processes_write_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    script = (
        "import sys; from pathlib import Path; from gpuconsole.core.store import Store\n"
        f"store = Store({SCHEMA!r}, path=Path(sys.argv[1]))\n"
        "for n in range(25):\n"
        "    with store.writing() as c: c.execute('INSERT INTO notes (text) VALUES (?)', (f'{sys.argv[2]}-{n}',))\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", script, str(path), str(n)]) for n in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert len(set(texts(Store(SCHEMA, path=path)))) == 75
