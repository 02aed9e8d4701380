#!/bin/bash
# Install what `make test` needs on a Debian machine, as little as possible, and
# nothing that is already installed. With the argument "full", also install what only
# `make test-full` needs: LLVM's tools, some 12 MB to download and 50 MB installed, and
# compilers of Nim and D. With
# "bench", also install what `make bench` runs and compares with. The script says what
# it could not install, and then exits 1.
set -uo pipefail
cd "$(dirname "$0")/.."
say() { printf '%s\n' "$*" >&2; }

sudo=
[ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && sudo=sudo; }

part=${1:-}
have() { command -v "$1" >/dev/null 2>&1; }
# missing: the packages of the programs that the tests call and that are not installed.
missing() {
  need=()
  have gcc || need+=(gcc libc6-dev)
  have g++ || need+=(g++)
  have readelf || need+=(binutils)
  have eu-addr2line || need+=(elfutils)
  have git || need+=(git)
  # Programs for Windows, which run in Wine.
  [ "$(uname -m)" != x86_64 ] || have x86_64-w64-mingw32-gcc || need+=(gcc-mingw-w64-x86-64-win32)
  [ "$(uname -m)" != x86_64 ] || have x86_64-w64-mingw32-g++ || need+=(g++-mingw-w64-x86-64-win32)
  have clang || need+=(clang)
  have llvm-pdbutil || need+=(llvm)
  have lld || have ld.lld || need+=(lld)
  [ -z "$part" ] || have llvm-profdata || need+=(llvm)
  # Compilers whose programs are recorded, 16 MB to download. Others are used if they are there.
  if [ "$part" = full ]; then
    have nim || need+=(nim)
    have ldc2 || need+=(ldc)
  fi
  have systemd-analyze || need+=(systemd) # it reads unit files; systemd need not run
  have strace || need+=(strace)
  have unshare || need+=(util-linux)
  have xz || need+=(xz-utils)
  have zstd || need+=(zstd)
  have musl-gcc || need+=(musl-tools)
  have python3 || need+=(python3)
  have luajit || need+=(luajit)
  have node || need+=(nodejs)
  have npm || need+=(npm)
  have chromium || need+=(chromium)
  # Makes the tests faster; not every system has it.
  have chromium-headless-shell || [ -n "${tried:-}" ] || need+=(chromium-headless-shell)
  have perf || need+=(linux-perf)
  [ -e /usr/lib/x86_64-linux-gnu/libc.a ] || [ -e /usr/lib/aarch64-linux-gnu/libc.a ] || need+=(libc6-dev)
}
failed=0
fail() { say "$*"; failed=1; }
missing
if [ ${#need[@]} -gt 0 ]; then
  if have apt-get; then
    say "installing: ${need[*]}"
    # A fresh machine may be running its own updates, which hold apt's lock.
    $sudo apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 update >&2 || true
    for p in "${need[@]}"; do
      DEBIAN_FRONTEND=noninteractive $sudo apt-get -y -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 --no-install-recommends install "$p" >/dev/null || say "could not install $p"
    done
  else
    say "not a Debian system: please install ${need[*]}"
  fi
  tried=1
  missing
  [ ${#need[@]} -eq 0 ] || fail "not there: ${need[*]}: tests that need them will be skipped and say so"
fi
# The page's own tools, and speedscope, which reads what candid writes.
if have npm; then scripts/web-deps.sh || fail "could not install the page's tools: tests that need them will say so"; fi
scripts/get-jdks.sh || fail "some JDKs are missing: their tests will say so"
[ "$(uname -m)" != x86_64 ] || scripts/get-wine.sh jvm || fail "Wine is missing: its tests will say so"
scripts/get-apps.sh tomcat jetty || fail "some servers are missing: their tests will say so"
scripts/get-dotnet.sh || fail "the .NET runtimes are missing: their tests will say so"
scripts/get-servers.sh || fail "the servers that tests push profiles to could not be built: their tests will say so"
scripts/get-apps.sh image25 image23 || fail "some native images are missing: their tests will say so"
if [ "${1:-}" = bench ]; then scripts/get-apps.sh || fail "some programs are missing: the bench will say so"; fi
exit $failed
