#!/usr/bin/env bash
# On a machine with an NVIDIA GPU: train in a container, record the console meanwhile, and keep its screens in tmux.
#
#   screenshots/on_gpu.sh IMAGE [-v /usr:/usr:ro …]     writes into $OUT (./out when unset); takes about two minutes
#
# IMAGE has CUDA PyTorch; what follows goes to `gpuconsole launch`. Needs an engine with the GPUs wired in, gpuconsole
# importable by python3, and tmux. Everything it launches is removed at the end. $OUT then holds
#   console-h200.jsonl.gz   the recording, without names: it belongs into tests/fixtures
#   tmux/*.ansi, *.txt      captures of the live console at three sizes: they belong into screenshots/tmux
#   console.log             what was done, and what each command said
# screenshots/take.sh puts them there and draws the pictures.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
image=${1:?name the image with CUDA PyTorch}
shift
out=$(mkdir -p "${OUT:-out}" && cd "${OUT:-out}" && pwd)
# A name of its own for the machine, so that no capture shows the real one. Only this script and what it starts see it.
if [ -z "${GPUCONSOLE_RENAMED:-}" ] && [ "$(id -u)" = 0 ] && unshare --uts true 2>/dev/null; then
  GPUCONSOLE_RENAMED=1 OUT=$out exec unshare --uts bash -c 'hostname gpu-box 2>/dev/null || echo gpu-box >/proc/sys/kernel/hostname; exec "$@"' _ "$0" "$image" "$@"
fi
exec > >(tee "$out/console.log") 2>&1
export HOME=${CONSOLE_HOME:-/home/me} LC_ALL=C.UTF-8 PYTHONPATH="$here/..${PYTHONPATH:+:$PYTHONPATH}"
export XDG_STATE_HOME=$HOME/.local/state
mkdir -p "$HOME/project" && cp "$here/train.py" "$HOME/project/" && cd "$HOME/project" || exit 1
gpuconsole() { python3 -m gpuconsole "$@"; }
names=(train prep eval)
cleanup() {
  kill "${notebook:-}" 2>/dev/null
  for name in "${names[@]}"; do gpuconsole rm --yes --force "$name" >/dev/null 2>&1; done
}
trap cleanup EXIT
cleanup

echo "== launch"
common=(--pull never -w /workspace "$@")
gpuconsole launch "$image" --name eval --gpus none "${common[@]}" -v "$HOME/project:/workspace:ro" -- \
  python3 -c 'raise SystemExit("no checkpoint in /workspace/checkpoints")'
port=(-p 8888:8888)
gpuconsole launch "$image" --name prep --gpus none "${common[@]}" "${port[@]}" -- \
  python3 -u -c 'import time; print("waiting for shards", flush=True); time.sleep(3600)' || {
  gpuconsole rm --yes --force prep >/dev/null 2>&1
  common+=(--network host)  # this engine has no bridge, so there are no ports either
  gpuconsole launch "$image" --name prep --gpus none "${common[@]}" -- \
    python3 -u -c 'import time; print("waiting for shards", flush=True); time.sleep(3600)'
}
gpuconsole launch "$image" --name train --gpus device=0 "${common[@]}" -v "$HOME/project:/workspace" -- \
  python3 -u train.py || exit 1
# Somebody's process beside the containers.
python3 -c 'import time, torch; held = torch.empty(3 << 30, dtype=torch.uint8, device="cuda"); time.sleep(3600)' &
notebook=$!
for _ in $(seq 60); do
  sleep 1
  gpuconsole logs train | grep -q 'step ' && break
done
gpuconsole ps
gpuconsole status

echo "== record, and walk in tmux meanwhile"
python3 "$here/record.py" -o "$out/console-h200.jsonl.gz" --seconds "${RECORD_S:-75}" --check train --check-at 5 &
recorder=$!
mkdir -p "$out/tmux"
if command -v tmux >/dev/null; then
  sleep 25  # the recorder's check has the container for itself
  tmux -V
  python3 "$here/live.py" -o "$out/tmux" --container train
else
  echo "on_gpu: there is no tmux here, so there are no captures"
fi
captured=$?
wait "$recorder"
recorded=$?
gpuconsole logs --tail 5 train
ls -l "$out" "$out/tmux"
echo "recording: exit $recorded, captures: exit $captured"
exit $((recorded | captured))
