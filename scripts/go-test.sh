#!/bin/bash
# Run the Go tests: packages that only compute in parallel, then those that look at
# running processes one after another, so that they do not look at each other. It ends
# with how many tests ran, which failed, and which were skipped and why.
#
#   scripts/go-test.sh           all packages; CANDID_FULL=1: on all configurations
#   scripts/go-test.sh quick     only the packages that compute, with -short
#   scripts/go-test.sh json ...  the events alone, as gotestsum reads them
set -uo pipefail
cd "$(dirname "$0")/.."

# Packages whose tests measure shares of time, stop threads, or load BPF programs.
alone='/(cmd/candid|internal/(capture/.+|hotspot|native|record|view|dump|format/(html|jfr|perfdata)|kernel|machine|oracle|own|priority|target|walk))$'
# A package's limit, which only ends what hangs.
limit=30m
[ -z "${CANDID_FULL:-}" ] || limit=60m

case ${1:-} in
  json)
    all=$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...) || exit 1
    failed=0
    short=()
    [ "${2:-}" != quick ] || short=(-short)
    go test -json -count=1 "${short[@]}" -timeout $limit $(grep -Ev "$alone" <<<"$all") || failed=1
    [ "${2:-}" = quick ] || go test -json -count=1 -p 1 -timeout $limit $(grep -E "$alone" <<<"$all") || failed=1
    exit $failed ;;
  ''|quick)
    exec go run gotest.tools/gotestsum@v1.13.0 --format standard-quiet --raw-command -- scripts/go-test.sh json "${1:-}" ;;
  *) echo "go-test: no way to test called $1" >&2; exit 2 ;;
esac
