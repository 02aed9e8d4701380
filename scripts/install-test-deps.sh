#!/bin/bash
# Install what `make test` needs on a Debian machine, as little as possible, and
# nothing that is there already. With the argument "bench": also what
# `make bench` compares with and runs.
set -uo pipefail
cd "$(dirname "$0")/.."
say() { printf '%s\n' "$*" >&2; }

sudo=
[ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && sudo=sudo; }

need=()
have() { command -v "$1" >/dev/null 2>&1; }
have gcc || need+=(gcc libc6-dev)
have g++ || need+=(g++)
have readelf || need+=(binutils)
have git || need+=(git)
have unshare || need+=(util-linux)
have musl-gcc || need+=(musl-tools)
have node || need+=(nodejs)
have npm || need+=(npm)
have chromium || need+=(chromium)
have tmux || need+=(tmux)
have perf || need+=(linux-perf)
[ -e /usr/lib/x86_64-linux-gnu/libc.a ] || [ -e /usr/lib/aarch64-linux-gnu/libc.a ] || need+=(libc6-dev)
if [ ${#need[@]} -gt 0 ]; then
  if have apt-get; then
    say "installing: ${need[*]}"
    $sudo apt-get -qq update >&2 || true
    for p in "${need[@]}"; do
      DEBIAN_FRONTEND=noninteractive $sudo apt-get -y -qq --no-install-recommends install "$p" >/dev/null || say "could not install $p: tests that need it will say so"
    done
  else
    say "not a Debian system: please install ${need[*]}"
  fi
fi
# The page's own tools, and speedscope, which reads what candid writes.
if have npm; then (cd web && npm ci --no-audit --no-fund --silent) || say "could not install the page's tools: tests that need them will say so"; fi
scripts/get-jdks.sh || say "some JDKs are missing: their tests will say so"
if [ "${1:-}" = bench ]; then scripts/get-apps.sh || say "some programs are missing: the bench will say so"; fi
exit 0
