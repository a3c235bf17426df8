#!/usr/bin/env bash
# Pack this machine's tmux with its libraries into .gpu/tmux.tar.xz, for a machine that has none and no network.
# Run in the project's root. There: tar -xJf .gpu/tmux.tar.xz -C /tmp/tmux && /tmp/tmux/bin/tmux
set -euo pipefail
program=$(command -v tmux) || { echo "pack_tmux: there is no tmux here; install it first" >&2; exit 5; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"/{bin,lib,terminfo/t,terminfo/s,terminfo/x} .gpu
cp -L "$program" "$folder/lib/tmux"
ldd "$program" | grep -o '/[^ ]*' | while read -r library; do cp -L "$library" "$folder/lib/"; done
for name in t/tmux t/tmux-256color s/screen s/screen-256color x/xterm x/xterm-256color; do
  for place in /etc/terminfo /lib/terminfo /usr/share/terminfo; do
    if [ -e "$place/$name" ]; then cp -L "$place/$name" "$folder/terminfo/$name"; break; fi
  done
done
cat >"$folder/bin/tmux" <<'WRAPPER'
#!/bin/sh
# Its own loader and libraries: those of this machine may be older.
here=$(dirname "$(dirname "$(readlink -f "$0")")")
export TERMINFO_DIRS="$here/terminfo:/etc/terminfo:/lib/terminfo:/usr/share/terminfo"
exec "$here"/lib/ld-linux-*.so.* --library-path "$here/lib" "$here/lib/tmux" "$@"
WRAPPER
chmod +x "$folder/bin/tmux"
tar -C "$folder" -cJf .gpu/tmux.tar.xz .
ls -l .gpu/tmux.tar.xz
