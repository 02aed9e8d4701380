#!/bin/bash
# Profile a real Java program: javac compiling the JDK's own sources. Install
# whatever is missing below ~/.cache and write demo-flame.html.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf '\n== %s\n' "$*" >&2; }
CACHE=${CANDID_RUNTIMES:-$HOME/.cache/candid-runtimes}

say "building candid"
make --no-print-directory candid

JAVA=$CACHE/jdks/17/bin/java
[ -x "$JAVA" ] || { say "fetching a JDK"; scripts/get-jdks.sh 17@bookworm || true; }
[ -x "$JAVA" ] || JAVA=$(command -v java) || { echo "demo: no Java here and none could be fetched: install openjdk-17-jdk-headless" >&2; exit 1; }
[ -e "$CACHE/apps/jdksrc/src.zip" ] || { say "fetching the JDK's sources"; scripts/get-apps.sh jdksrc; }

WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
# java.util.jar of the sources may be newer than the JDK that compiles them.
(cd "$WORK" && "$JAVA" -m jdk.jartool/sun.tools.jar.Main xf "$CACHE/apps/jdksrc/src.zip" java.base/java/util java.base/java/math java.base/java/io && rm -rf java.base/java/util/jar)
find "$WORK/java.base" -name '*.java' > "$WORK/files"
run=
[ "$(id -u)" = 0 ] || [ "$(cat /proc/sys/kernel/perf_event_paranoid 2>/dev/null || echo 0)" -le -1 ] || { command -v sudo >/dev/null && run="sudo"; }

say "profiling javac on $(wc -l < "$WORK/files") source files of the JDK"
rm -f demo.pb.gz demo-flame.html
$run ./candid record --force -F 499 -o demo.pb.gz -- "$JAVA" -m jdk.compiler/com.sun.tools.javac.Main -nowarn -XDignore.symbol.file -proc:none \
  --patch-module java.base="$WORK/java.base" -d "$WORK/out" @"$WORK/files" >"$WORK/javac.log" 2>"$WORK/candid.log" || { cat "$WORK/candid.log" "$WORK/javac.log" >&2; exit 1; }
cat "$WORK/candid.log"
./candid convert --force demo.pb.gz -o demo-flame.html
say "where the time went"
./candid report demo.pb.gz -n 20
say "open demo-flame.html in a browser for the flame graph"
