"""Secrets in printed forms: named where they stand, whatever the text around them, and nothing else is named."""

from __future__ import annotations

import os
import subprocess
import tomllib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.engine.model import EngineInfo, GpuPath
from gpuconsole.launch.compose import compose_text
from gpuconsole.launch.fields import Surroundings
from gpuconsole.launch.gpupath import GpuRoute
from gpuconsole.launch.gpus import GpuChoice
from gpuconsole.launch.options import LaunchOptions, read_options
from gpuconsole.launch.profiletext import profile_table
from gpuconsole.launch.references import References, quote
from gpuconsole.launch.render import render
from gpuconsole.launch.request import build_request
from gpuconsole.launch.spec import LaunchSpec
from gpuconsole.launch.tomltext import table_text
from gpuconsole.services.launchrecords import harmless_options
from gpuconsole.services.planning import LaunchPlan
from gpuconsole.services.shownsecrets import left_to_shell, references_of, secrets_of_shell, shown_line

SECRET = "pa's \"w$rd`1"
SHELL = {"DB_PASSWORD": SECRET, "OTHER_KEY": "k3y-that-is-long", "HOME": "/home/me", "LANG": "C.UTF-8"}


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8")), st.text(max_size=5))
def test_a_shell_reads_what_was_meant(before: str, after: str) -> None:
    for word in (before + SECRET + after, SECRET + before + SECRET, before, SECRET):
        line = quote(word, References.of({"DB_PASSWORD": SECRET}))
        assert SECRET not in line
        assert "\n" not in line
    line = quote(f"{before}{SECRET}{after}", References.of({"DB_PASSWORD": SECRET}))
    assert '"${DB_PASSWORD}"' in line


@pytest.mark.parametrize("around", ["", "a b", "'", '"', "$X", "\\", "\n\t", "*", "é\u202e"])
def test_bash_gives_the_word_back(around: str) -> None:
    word = f"{around}{SECRET}{around}{SECRET}"
    line = quote(word, References.of({"DB_PASSWORD": SECRET}))
    assert SECRET not in line
    done = subprocess.run(["bash", "-c", f"printf %s {line}"], env={**os.environ, "DB_PASSWORD": SECRET},
                          capture_output=True, check=True)  # fmt: skip
    assert done.stdout.decode() == word


def spec_of(options: LaunchOptions, *taken: str) -> LaunchSpec:
    return replace(read_options(options, Surroundings("/", "/home/me", SHELL, 1000, 1000)), taken=frozenset(taken))


OPTIONS = LaunchOptions(
    "a:1", command=("train", f"--login=me:{SECRET}", "plain ${X}"), gpus="none", entrypoint=f"/run {SECRET}",
    environment=(f"FROM={SECRET}", f"IN=x{SECRET}y", "OTHER_KEY=k3y-that-is-long", "WANDB_API_KEY=0123", "LR=0.1"),
    labels=(f"note={SECRET}",),
)  # fmt: skip


def test_no_form_prints_a_secret_of_the_shell() -> None:
    spec = spec_of(OPTIONS, "DB_PASSWORD", "OTHER_KEY")
    hidden = references_of(spec, SHELL)
    request = build_request(spec, name="box", info=EngineInfo(endpoint="unix:///x"))
    line = str(render(request, spec, references=hidden))
    file, table = compose_text(request, spec, hidden), table_text("profiles.x", profile_table(OPTIONS, hidden))
    kept = str(harmless_options(OPTIONS, hidden))
    for text in (line, file, table, kept):
        assert "w$rd" not in text.replace("$$", "$"), text
        assert "k3y-that" not in text
        assert "0123" not in text
        assert "0.1" in text
    assert line.startswith('FROM="${DB_PASSWORD}" IN=x"${DB_PASSWORD}"y docker run ')
    assert " --env FROM --env IN --env OTHER_KEY --env WANDB_API_KEY --env LR=0.1 " in line
    assert '      FROM: "${DB_PASSWORD}"\n      IN: "x${DB_PASSWORD}y"\n      OTHER_KEY: "${OTHER_KEY}"\n' in file
    assert "      WANDB_API_KEY:\n" in file
    written = tomllib.loads(table)["profiles"]["x"]
    assert written["env"]["IN"] == "x${DB_PASSWORD}y"
    assert written["env"]["WANDB_API_KEY"] == "${WANDB_API_KEY}"
    assert written["command"] == ["train", "--login=me:${DB_PASSWORD}", "plain $${X}"]
    assert left_to_shell(spec, hidden, files_too=False) == ("WANDB_API_KEY",)


def plan_of(monkeypatch: pytest.MonkeyPatch, options: LaunchOptions, *taken: str) -> LaunchPlan:
    for name, value in SHELL.items():
        monkeypatch.setenv(name, value)
    spec, info = spec_of(options, *taken), EngineInfo(endpoint="unix:///x")
    return LaunchPlan(spec, build_request(spec, name="box", info=info), info, GpuChoice(), GpuRoute(GpuPath.NONE, ""))


def test_the_line_that_is_shown_is_the_one_of_a_dry_run_where_nothing_is_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for environment in (
        ("PLAIN=a b", "WANDB_MODE=offline"),
        (f"IN=x{SECRET}y", f"DOCKER_HOST={SECRET}", "API_TOKEN=s3cr3t"),
    ):
        options = LaunchOptions("a:1", command=("echo", "", "a'b\n"), gpus="none", environment=environment)
        plan = plan_of(monkeypatch, options, "DB_PASSWORD")
        line = shown_line(plan)
        assert " ".join(line.words) == str(plan.docker_run(references=references_of(plan.spec, os.environ)))
        assert line.needs_bash
        assert not line.hides
        assert line.exported == tuple(["API_TOKEN"] if "API_TOKEN=s3cr3t" in environment else [])
        assert "s3cr3t" not in str(line)


@pytest.mark.parametrize("word", ["s3cr3t'x", "a ${S}", "$(id)"])
def test_a_secret_in_the_command_is_masked_and_the_line_does_not_run(
    monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    command = ("train", "--token", word, f"--api-key={word}", "two words", "https://me:pa55@host/x", f"-x{SECRET}")
    line = shown_line(plan_of(monkeypatch, LaunchOptions("a:1", command=command, gpus="none"), "DB_PASSWORD"))
    text = " ".join(line.words)
    assert line.hides
    assert text.endswith(
        """a:1 train --token (hidden) --api-key=(hidden) 'two words' https://me:(hidden)@host/x -x"${DB_PASSWORD}\""""
    )
    assert not any(secret in text for secret in (word, SECRET, "pa55"))
    ran = subprocess.run(["/bin/sh", "-c", text], env={"PATH": "/nowhere"}, capture_output=True, check=False)
    assert ran.returncode == 2, "no shell takes it for a command"


def test_what_cannot_be_set_for_one_command_is_named_in_its_place() -> None:
    spec = spec_of(LaunchOptions("a:1", gpus="none", environment=(f"DOCKER_HOST={SECRET}", f"a.b={SECRET}")), *SHELL)
    request = build_request(spec, name="box", info=EngineInfo(endpoint="unix:///x"))
    line = str(render(request, spec, references=references_of(spec, SHELL)))
    assert line.startswith("docker run ")
    assert ' --env DOCKER_HOST="${DB_PASSWORD}" --env a.b="${DB_PASSWORD}" ' in line


def test_ordinary_words_are_secrets_only_where_a_profile_took_them() -> None:
    shell = {"PASSWORD": "training", "API_KEY": "1234", "SSH_AUTH_SOCK": "/run/x", "KEY_FILE": "/home/me/key",
             "TOKEN": "hf_abcdefghijklm1", "EMPTY_TOKEN": "", "MAX_TOKENS": "123456789"}  # fmt: skip
    assert secrets_of_shell(shell) == {"TOKEN": "hf_abcdefghijklm1"}
    assert set(secrets_of_shell(shell, ["PASSWORD", "API_KEY", "MAX_TOKENS", "EMPTY_TOKEN"])) == {
        "PASSWORD", "API_KEY", "TOKEN"}  # fmt: skip


def test_the_longer_of_two_secrets_is_named() -> None:
    both = References.of({"A_KEY": "abcdef", "B_KEY": "abcdefgh"})
    assert quote("xabcdefghabcdef", both) == 'x"${B_KEY}""${A_KEY}"'
    assert References.of({"not a name": "secret"}).holds("secret") is False
