#!/bin/bash
# The servers that tests push profiles to (test/servers): OpenTelemetry's Collector, Pyroscope's push
# API, Parca's. They are built once, below the cache folder ($CANDID_RUNTIMES/servers, default
# ~/.cache/candid-runtimes/servers), and again when their sources change: some 100 s of CPU time and
# 30 MB, and what Go keeps of it in its own caches.
set -uo pipefail
cd "$(dirname "$0")/../test/servers"
DEST=${CANDID_RUNTIMES:-$HOME/.cache/candid-runtimes}/servers
sum=$( { go version; cat ./*.go go.mod go.sum; } | sha256sum | cut -d' ' -f1)
[ -x "$DEST/servers" ] && [ "$(cat "$DEST/sum" 2>/dev/null)" = "$sum" ] && exit 0
mkdir -p "$DEST"
printf 'building the servers that tests push profiles to\n' >&2
CGO_ENABLED=0 GOFLAGS=-trimpath go build -ldflags='-s -w' -o "$DEST/servers.new" . || exit 1
mv "$DEST/servers.new" "$DEST/servers" && printf '%s' "$sum" > "$DEST/sum"
