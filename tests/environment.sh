# Sourced by tests/run and tests/try: a virtual environment with gpuconsole and what its tests need, made once.
#
#   environment test      .venv with the package (editable), its test extra and the CPU build of PyTorch
#
# Afterwards $venv is the environment's folder, from the root. GPUCONSOLE_PYTHON picks the interpreter, GPUCONSOLE_VENV
# the folder.

venv=${GPUCONSOLE_VENV:-.venv}
case $venv in /*) ;; *) venv=$PWD/$venv ;; esac
cpu_index=${PYTORCH_CPU_INDEX:-https://download.pytorch.org/whl/cpu}

say() { printf '\033[1m==> %s\033[0m\n' "$*" >&2; }
stop() { printf 'gpuconsole: %s\n  → %s\n' "$1" "$2" >&2; exit "${3:-1}"; }

find_python() {
  local candidate
  for candidate in ${GPUCONSOLE_PYTHON:-python3 python3.13 python3.12 python3.11 python}; do
    if command -v "$candidate" >/dev/null 2>&1 &&
      "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  stop "No Python 3.11 or newer was found." "Install python3 (3.11 or newer), or name one in GPUCONSOLE_PYTHON."
}

on_debian() { [ -r /etc/debian_version ] && command -v apt-get >/dev/null 2>&1; }

# Debian packages, installed only as root and only those whose command is missing: NAME=COMMAND …
debian_packages() {
  local pair missing=()
  for pair in "$@"; do
    command -v "${pair#*=}" >/dev/null 2>&1 || [ -e "/usr/sbin/${pair#*=}" ] || missing+=("${pair%%=*}")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if on_debian && [ "$(id -u)" = 0 ]; then
    say "Installing ${missing[*]}"
    apt-get -qq update >/dev/null
    DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
  else
    say "Not installed, so what needs them is skipped: ${missing[*]}"
  fi
}

# pip, without its warning about folders; its exit code stays, and so do its other words.
pip() {
  local code=0 said
  said=$("$venv/bin/python" -m pip "$@" -q 2>&1) || code=$?
  grep -v '^WARNING: Location' <<<"$said" | grep . >&2 || true
  return $code
}

environment() {
  local python stamp wanted
  python=$(find_python)
  if ! [ -x "$venv/bin/python" ] || ! "$venv/bin/python" -c 'import sys' 2>/dev/null; then
    say "Making $venv with $("$python" --version)"
    "$python" -m venv "$venv" 2>/dev/null || {
      debian_packages "python3-venv=no-such-command"
      rm -rf "$venv"
      "$python" -m venv "$venv" || stop "No virtual environment could be made." "Install your distribution's python3-venv."
    }
  fi
  wanted=$(sha256sum pyproject.toml | cut -d' ' -f1)
  stamp="$venv/.gpuconsole-installed"
  if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    say "Installing gpuconsole and what its tests need into $venv"
    pip install --upgrade pip || say "pip could not be upgraded; the one that is there goes on"
    install_torch
    pip install -e '.[test]' ||
      stop "gpuconsole and what its tests need could not be installed." "Read pip's words above, mend the cause and run this again."
    "$venv/bin/python" -c 'import gpuconsole, docker, textual, pytest, torch' ||
      stop "The installation is not complete." "Read the messages of pip above, mend the cause and run this again."
    echo "$wanted" >"$stamp"
  fi
}

# The CPU build of PyTorch: 200 MB where the default build is several GB of CUDA libraries that no test needs.
install_torch() {
  local version
  version=$(sed -n 's/^ *"torch==\([0-9.]*\)",/\1/p' pyproject.toml)
  "$venv/bin/python" -c "import torch; assert torch.__version__.startswith('$version')" 2>/dev/null && return
  pip install "torch==$version+cpu" 2>/dev/null ||
    pip install "torch==$version" --index-url "$cpu_index" \
      --extra-index-url "$("$venv/bin/python" -m pip config get global.index-url 2>/dev/null || echo "$cpu_index")" ||
    stop "The CPU build of PyTorch $version could not be installed." "Set PYTORCH_CPU_INDEX to an index that has it."
}
