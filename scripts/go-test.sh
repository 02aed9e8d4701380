#!/bin/bash
# Run the Go tests: first the packages that only compute, in parallel; then those that look at
# running processes, one more at a time than there are CPUs, because they mostly wait; then
# those that look at the whole machine, one after another. Tests whose measurements other
# packages did not permit are run again alone. The run ends with how many tests ran, which
# failed, and which were skipped and why.
#
#   scripts/go-test.sh           all packages; CANDID_FULL=1: on all configurations
#   scripts/go-test.sh quick     only the packages that compute, with -short
#   scripts/go-test.sh json ...  the events alone, as gotestsum reads them
#   scripts/go-test.sh times     what took longest in the last run
set -uo pipefail
cd "$(dirname "$0")/.."

# waits: packages that stop threads, load BPF programs, start Chromium or JVMs, the ones that
# take longest first. Their tests tolerate load on both CPUs.
waits='internal/capture/winsuspend cmd/candid internal/hotspot internal/hotspot/threads internal/hotspot/hsperfdata internal/hotspot/vmstructs internal/record internal/view internal/store internal/runtimes/dotnet internal/format/jfr
  internal/capture/suspend internal/native internal/capture/bpfcopy internal/format/html internal/capture/engines
  internal/dump internal/push internal/nativeimage internal/symbol internal/format/perfdata internal/capture/event internal/capture/launch internal/capture/perfevent internal/target'
# measures: packages whose tests compare the machine's time, nice levels or CPUs with their own.
measures='internal/kallsyms internal/hostinfo internal/oracle internal/attribution internal/priority internal/walk'
# How many of them run at once: two at a time kept both CPUs busy for 70 % of the time.
lanes=$(($(nproc) + 1))
[ "$lanes" -le 4 ] || lanes=4
# How many t.Parallel tests of a package run at once there. They wait more than they
# compute: two at a time, those of cmd/candid took some 320 s for 200 s of CPU time.
waiting=$(nproc)
[ "$waiting" -ge 4 ] || waiting=4
# A package's time limit, which only ends tests that hang.
limit=15m
[ -z "${CANDID_FULL:-}" ] || limit=55m
# The events of the last run, for `times`.
kept=${XDG_CACHE_HOME:-$HOME/.cache}/candid-tests/last.json

# with_tests PACKAGE...: the import paths of those packages that have tests on this platform.
with_tests() { go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' "$@" | grep .; }

# dirs DIR...: directories as package patterns.
dirs() { printf './%s\n' "$@"; }

# again EVENTS: run each test that the machine did not permit, according to the events, alone
# with its parent tests. A test that is skipped again stays skipped.
again() {
  local package test failed=0 built='' dir
  dir=$(mktemp -d) || return 1
  while read -r package test; do
    if [ "$package" != "$built" ]; then # once for all tests of a package
      go test -c $vetted -o "$dir/tests" "$package" && built=$package || { failed=1; continue; }
    fi
    (cd "$(go list -f '{{.Dir}}' "$package")" && go tool test2json -t -p "$package" "$dir/tests" -test.v=test2json -test.timeout $limit \
      -test.run "$(printf %s "$test" | sed -e 's/[][().*+?^${}|\\]/\\&/g' -e 's,/,$/^,g' -e 's/^/^/' -e 's/$/$/')" </dev/null) || failed=1
  done < <(sed -n 's/.*"Package":"\([^"]*\)","Test":"\([^"]*\)".*the machine did not permit the measurement.*/\1 \2/p' "$1" | sort -u)
  rm -rf "$dir"
  return $failed
}

# but_hindered passes events on except for the end of those tests, which comes after they were
# run again.
but_hindered() {
  awk '
    { key = $0; sub(/.*"Package":/, "", key); sub(/,"(Output|Elapsed)":.*/, "", key) }
    /"Action":"output"/ && /the machine did not permit the measurement/ { hindered[key] = 1 }
    /"Action":"skip"/ && hindered[key] { next }
    { print; fflush() }'
}

case ${1:-} in
  json)
    # The Makefile has vetted everything, for this platform too.
    vetted=-vet=off
    all=$(with_tests ./...) || exit 1
    beside=$(with_tests $(dirs $waits)) || exit 1
    apart=$(with_tests $(dirs $measures)) || exit 1
    failed=0
    short=()
    [ "${2:-}" != quick ] || short=(-short)
    mkdir -p "$(dirname "$kept")" && : >"$kept" || exit 1
    {
      go test -json -count=1 $vetted "${short[@]}" -timeout $limit $(grep -vxF "$beside
$apart" <<<"$all") || failed=1
      if [ "${2:-}" != quick ]; then
        go test -json -count=1 $vetted -p $lanes -parallel $waiting -timeout $limit $beside || failed=1
        go test -json -count=1 $vetted -p 1 -timeout $limit $apart || failed=1
      fi
      exit $failed
    } | tee "$kept" | but_hindered
    failed=${PIPESTATUS[0]}
    again "$kept" || failed=1
    exit $failed ;;
  ''|quick)
    exec go run gotest.tools/gotestsum@v1.13.0 --format standard-quiet --raw-command -- scripts/go-test.sh json "${1:-}" ;;
  times)
    exec go run gotest.tools/gotestsum@v1.13.0 tool slowest --jsonfile "$kept" --threshold "${2:-2s}" ;;
  *) echo "go-test: no way to test called $1" >&2; exit 2 ;;
esac
