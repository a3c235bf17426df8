"""Secrets are masked wherever a container's configuration is shown."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gpuconsole.services import secrets
from gpuconsole.services.secrets import MASK, mask_arguments, mask_environment, mask_text, mask_value

SECRET = "s3cr3tValue"


@pytest.mark.parametrize(
    "name",
    [
        "HF_TOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "MYSQL_PWD", "DB_PASSWORD",
        "PGPASSWORD", "dbPassword", "SSH_PRIVATE_KEY", "GOOGLE_CREDENTIALS", "SENTRY_DSN", "REGISTRY_AUTH",
        "GITHUB_PAT", "GH_PAT", "PAT", "PIN", "CARD_PIN", "SALT", "azureSig", "SIGNATURE",
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
        ("COMPAT", "1"),
        ("PIN_MEMORY", "1"),
        ("PINNED", "yes"),
        ("SIGNAL", "SIGTERM"),
        ("SPIN", "1"),
        ("DESIGN", "new"),
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
        f"https://blob.example/a.pt?sv=2024&sig={SECRET}&se=9",
        f"GITHUB_PAT={SECRET} ./install",
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
        f"postgres://u:p@{SECRET}@db/x",
        f"postgres://u:{SECRET}@ss@db/x",
        f"redis://u:p/{SECRET}@db:6379/0",
        f"u:p@{SECRET}@db",
        f"u:{SECRET}/ss@db",
        f"git clone https://{SECRET}{SECRET}@git.example/x",
        f"git clone https://{SECRET}{SECRET}:@git.example/x",
        f"git clone https://{SECRET}{SECRET}:x-oauth-basic@github.com/x",
        f"http://a:80,http://u:{SECRET}@b",
        f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY-----",
        f"-----BEGIN OPENSSH PRIVATE KEY----- {SECRET} -----END OPENSSH PRIVATE KEY-----",
        f"-----BEGIN PRIVATE KEY-----\\n{SECRET} and its end is missing",
        f"AWS_SECRET_ACCESS_KEY={SECRET}",
        f"aws_secret_access_key = {SECRET}",
        f"ghp_{SECRET}{SECRET}",
        f"npm_{SECRET}{SECRET}{SECRET}",
        f"dckr_pat_{SECRET}{SECRET}",
        f"sk_live_{SECRET}",
        f"Authorization: Token {SECRET}",
        f"authorization={SECRET}",
        f"X-Api-Key: {SECRET}",
        f'{{"token": "{SECRET}"}}',
        f'{{"token": "a\\"{SECRET}"}}',
        f'{{\\"token\\": \\"{SECRET}\\"}}',
        f"{{'password': '{SECRET}'}}",
        f'{{"api_keys": ["{SECRET}", "b"]}}',
        f'["--token", "{SECRET}"]',
        f'token=ab"{SECRET}"c',
        f'password="{SECRET} and its quote is missing',
        f"--password={SECRET}",
        f"sshpass -p {SECRET} ssh host",
        f"/usr/bin/mysql -u root -p{SECRET} db",
        f"redis-cli -h db -a {SECRET}",
        f"curl -s -u me:{SECRET} http://host",
    ],
)
def test_secrets_inside_text_are_masked(text: str) -> None:
    masked = mask_text(text)
    assert SECRET not in masked
    assert MASK in masked


@pytest.mark.parametrize("name", ["token", "--token", "HF_TOKEN", "password", "--auth", "api_key"])
@pytest.mark.parametrize("value", ["1", "12345", "987654321"])
def test_a_secret_may_be_a_number(name: str, value: str) -> None:
    assert mask_value(name, value) == MASK
    for text in (f"{name}={value}", f"--{name.lstrip('-')} {value}", f'{{"{name}":{value}}}', f"{name}: {value}"):
        assert value not in mask_text(text)
    assert mask_arguments(["serve", f"--{name.lstrip('-')}", value])[2] == MASK


@pytest.mark.parametrize(
    "text",
    [
        "--max-tokens 512", "--max_tokens=512", "--token-count 3", "--num-tokens 1000000", "--tokens-per-batch 4k",
        "max_new_tokens: 1e6", '{"max_tokens": 512, "n": 2}', '{"max_tokens":512,"x":"y"}', "--pad-token-id 0",
        "--key-dim 64", "maxTokens=4096", "--max-tokens '512'", "--auth-timeout 30", "--max-tokens 512,1024",
        "http://127.0.0.1:8888/lab", "http://host:8080/x@y", "git+https://host:8443/repo.git@v1.0", "ssh://mei@host",
        "https://git@github.com/x", "pytorch/pytorch:2.9@sha256:0123456789abcdef", "train:1@sha256:0123456789abcdef",
        "-v /data/keys:/keys:ro", "docker run -p 8888:8888 image", "ssh -p 2222 host", "mailto:mei@example.org",
        "torchrun --rdzv-endpoint=host:29500 train.py", "python -c 'import torch; torch.cuda.init()'",
        "jupyter lab --ServerApp.token= --port 8888", "--tokenizer gpt2", "--monitor 3",
    ],
)  # fmt: skip
def test_what_is_no_secret_is_never_masked(text: str) -> None:
    assert mask_text(text) == text
    assert mask_arguments(text.split()) == tuple(text.split())


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
        ["serve", f"--hf-token=two words {SECRET}"],
        ["env", f"HF_TOKEN=two words {SECRET}", "python"],
        ["docker", "run", "-e", f"HF_TOKEN=two words {SECRET}", "image"],
        ["sshpass", "-p", SECRET, "ssh", "host"],
        ["mysql", "-u", "root", f"-p{SECRET}"],
        ["python", "x.py", f"https://u:p@{SECRET}@host/"],
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


PLACES = st.sampled_from(
    ["--token {}", "--api-key={}", "HF_TOKEN={}", "a=b=c password={}", "http://h/?x=1&token={}", "x --db.password '{}'",
     "https://u:{}@host/x", "https://u:a@{}@host/x", "https://u:a/{}@host/x", '{{"a": 1, "secret": "{}", "b": 2}}',
     "client_secret: {}", "-----BEGIN PRIVATE KEY----- {} -----END PRIVATE KEY-----"]
)  # fmt: skip


@given(
    PLACES, st.text(alphabet="abcdefghijABCDEFGHIJ0123456789+/.~@%!", min_size=6, max_size=40), st.text(max_size=40),
    st.text(max_size=40),
)  # fmt: skip
def test_no_secret_in_any_place_is_ever_shown_whatever_is_around_it(
    place: str, value: str, before: str, after: str
) -> None:
    assume(not value.startswith(("/", ".")) and value not in before + after + place + MASK)
    assume(re.match(r"\d{1,5}[/?#]", value) is None)  # in an address that is a port
    assert value not in mask_text(f"{before} {place.format(value)} {after}")


@given(PLACES, st.text(alphabet="abcXYZ0123456789", min_size=6, max_size=40))
def test_masking_what_is_masked_changes_nothing(place: str, value: str) -> None:
    once = mask_text(place.format(value))
    assert mask_text(once) == once


@pytest.mark.parametrize(
    "piece",
    [
        "a", "a.b-", "a://b:c", "a=", "a=b", "curl ", '"a', '\\"a', "token=", "eyJ-", "[token=[", "x@", "u:p", "http://",
        "http://:", "http://:80/", "x://u:p", "http://u:@", "x://@",
    ],
)  # fmt: skip
def test_a_text_without_end_is_no_trouble(piece: str) -> None:
    """Nothing is tried again and again, and nothing is nested."""
    text = piece * (150_000 // len(piece))
    assert mask_text(text)
    for end in (f"@ ftp://u:{SECRET}@host", f" x --password={SECRET}", f" postgres://me:{SECRET}@db/x {piece}@"):
        assert SECRET not in mask_text(text + end)


@pytest.mark.parametrize("length", [1, 1024, 1025, 20_000])
def test_the_password_of_an_address_is_masked_however_long_it_is(length: int) -> None:
    for before in ("https://me:", "postgres://me:", "https://"):
        assert "x1" not in mask_text(f"a {before}{'x1' * length}@host/b")


@given(st.text(max_size=200))
def test_no_text_breaks_it(text: str) -> None:
    mask_text(text)
    mask_arguments(text.split())


@given(st.from_regex(secrets._SECRET_NAME), st.text(max_size=4))
def test_no_secret_name_is_passed_over_for_its_letters(name: str, around: str) -> None:
    upper = f"{around}_{name}_{around}".upper()
    assert any(word in upper for word in secrets._IN_SECRET_NAMES)


@given(st.from_regex(secrets._KNOWN_TOKENS))
def test_no_known_token_is_passed_over_for_its_letters(text: str) -> None:
    assert any(sign in text.lower() for sign in secrets._IN_KNOWN_TOKENS)
