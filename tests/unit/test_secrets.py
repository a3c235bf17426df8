"""Secrets are masked wherever a container's configuration is shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.services.secrets import MASK, mask_arguments, mask_environment, mask_text, mask_value

SECRET = "s3cr3tValue"


@pytest.mark.parametrize(
    "name",
    [
        "HF_TOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "MYSQL_PWD", "DB_PASSWORD",
        "PGPASSWORD", "dbPassword", "SSH_PRIVATE_KEY", "GOOGLE_CREDENTIALS", "SENTRY_DSN", "REGISTRY_AUTH",
        "JUPYTER_TOKEN", "api-key", "session.cookie", "KEY", "openai_apikey", "SLACK_WEBHOOK",
    ],
)  # fmt: skip
def test_a_variable_of_such_a_name_is_masked(name: str) -> None:
    assert mask_environment([(name, SECRET)]) == ((name, MASK),)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PATH", "/usr/bin:/bin"),
        ("PWD", "/workspace"),
        ("OLDPWD", "/"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("MAX_TOKENS", "512"),
        ("KEYBOARD", "us"),
        ("XAUTHORITY", "/root/.Xauthority"),
        ("PYTORCH_VERSION", "2.9.0"),
        ("NVIDIA_REQUIRE_CUDA", "cuda>=12.8 brand=tesla,driver>=535,driver<536"),
        ("HF_TOKEN", ""),
        ("URL", "http://127.0.0.1:8888/lab?x=1"),
    ],
)
def test_what_is_no_secret_stays(name: str, value: str) -> None:
    assert mask_value(name, value) == value


@pytest.mark.parametrize(
    "text",
    [
        f"postgres://user:{SECRET}@db:5432/x",
        f"https://:{SECRET}@git.example/x",
        f"http://host:8888/lab?token={SECRET}&x=1",
        f"export HF_TOKEN={SECRET}; python train.py",
        f"export HF_TOKEN='{SECRET}' && python train.py",
        f'bash -c "WANDB_API_KEY={SECRET} python train.py"',
        f"jupyter lab --ServerApp.token={SECRET}",
        f"jupyter lab --ServerApp.password '{SECRET}'",
        f"tool --api-key {SECRET} run",
        f"curl -H 'Authorization: Bearer {SECRET}x'",
        f"hf_{SECRET}{SECRET}",
        f"sk-{SECRET}{SECRET}",
        f"password: {SECRET}",
        f'{{"token":"{SECRET}", "x": 1}}',
        f"url=http://host/?token={SECRET}",
    ],
)
def test_secrets_inside_text_are_masked(text: str) -> None:
    masked = mask_text(text)
    assert SECRET not in masked
    assert MASK in masked


def test_the_rest_of_the_text_stays() -> None:
    assert mask_text(f"tool --api-key {SECRET} run --epochs 3") == f"tool --api-key {MASK} run --epochs 3"
    assert mask_text(f"postgres://me:{SECRET}@db/x") == f"postgres://me:{MASK}@db/x"
    assert mask_text("train --max-tokens 512 --lr=0.1") == "train --max-tokens 512 --lr=0.1"


@pytest.mark.parametrize(
    "arguments",
    [
        ["serve", f"--token={SECRET}"],
        ["serve", "--token", SECRET],
        ["serve", "--hf-token", f"{SECRET} with spaces", "--port", "80"],
        ["env", f"HF_TOKEN={SECRET}", "python"],
        ["bash", "-lc", f"export HF_TOKEN={SECRET}"],
    ],
)
def test_arguments_are_masked(arguments: list[str]) -> None:
    masked = mask_arguments(arguments)
    assert len(masked) == len(arguments)
    assert SECRET not in " ".join(masked)
    assert masked[0] == arguments[0]


def test_an_option_without_a_value_masks_nothing() -> None:
    assert mask_arguments(["serve", "--token", "--port", "80"]) == ("serve", "--token", "--port", "80")


def test_variables_keep_their_order_and_their_lack_of_value() -> None:
    given_ = [("B", "1"), ("HF_TOKEN", None), ("A", "2"), ("A", "3")]
    assert mask_environment(given_) == tuple(given_)


@given(st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=30))
def test_no_secret_of_a_named_variable_is_ever_shown(value: str) -> None:
    shown = mask_value("API_KEY", value)
    assert shown == MASK


@given(st.text(max_size=200))
def test_no_text_breaks_it(text: str) -> None:
    mask_text(text)
    mask_arguments(text.split())
