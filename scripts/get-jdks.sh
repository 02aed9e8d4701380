#!/bin/bash
# Unpack several Debian OpenJDKs side by side below a cache folder. Nothing is
# installed into the system and no root is needed.
#
#   scripts/get-jdks.sh [V@SUITE ...]      default: 8 11 17 21 25 27
#
# Each lands in $CANDID_RUNTIMES/jdks/V (default ~/.cache/candid-runtimes/jdks/V)
# as a working JAVA_HOME with the small tools that the tests call (javac, jstack,
# jcmd, jfr). A JDK that exists and runs is left alone, so a second call is
# quick. If a suite no longer has its JDK, the others are still unpacked: the
# script says what is missing and exits 1 at the end.
set -uo pipefail

DEST=${CANDID_RUNTIMES:-$HOME/.cache/candid-runtimes}/jdks
ARCH=$(dpkg --print-architecture)
MT=$(uname -m)-linux-gnu
WANT=("$@")
[ ${#WANT[@]} -gt 0 ] || WANT=(8@sid 11@bullseye 17@bookworm 21@trixie 25@trixie 27@sid)

say() { printf '%s\n' "$*" >&2; }
runs() { [ -x "$DEST/$1/bin/java" ] && [ -e "$DEST/$1/.candid-ok" ]; }

missing=()
for w in "${WANT[@]}"; do runs "${w%@*}" || missing+=("$w"); done
[ ${#missing[@]} -gt 0 ] || exit 0

for tool in apt-get dpkg-deb dpkg; do
  command -v $tool >/dev/null || { say "get-jdks: needs $tool (a Debian system): cannot fetch ${missing[*]}"; exit 1; }
done
# The Debian mirror that this machine already uses.
MIRROR=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -m1 '/debian/\?$')
[ -n "$MIRROR" ] || { [ "$(id -u)" = 0 ] && apt-get -qq update; MIRROR=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -m1 '/debian/\?$'); }
[ -n "$MIRROR" ] || { say "get-jdks: apt knows no Debian mirror; run 'apt-get update' first"; exit 1; }
MIRROR=${MIRROR%/}
mkdir -p "$DEST"
DEST=$(readlink -f "$DEST")

# with_suite SUITE CMD...: run an apt tool with a separate state for one suite.
with_suite() {
  local suite=$1 root="$DEST/.apt/$1"
  shift
  if [ ! -f "$root/apt.conf" ]; then
    mkdir -p "$root"/{etc/preferences.d,state/lists/partial,cache/archives/partial}
    : > "$root/state/status"
    echo "deb [arch=$ARCH signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $MIRROR $suite main" > "$root/etc/sources.list"
    cat > "$root/apt.conf" <<E2
Dir::Etc "$root/etc";
Dir::Etc::sourcelist "$root/etc/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::State "$root/state";
Dir::State::status "$root/state/status";
Dir::Cache "$root/cache";
APT::Architecture "$ARCH";
APT::Architectures { "$ARCH"; };
Acquire::Languages "none";
APT::Sandbox::User "root";
Acquire::Check-Valid-Until "false";
E2
  fi
  APT_CONFIG="$root/apt.conf" "$@"
}
newest() { ls -t "$DEST/.debs/$1/$2"_*.deb 2>/dev/null | head -1; }

# sid's C library runs the JDKs that are newer than this system's; bookworm's
# patchelf points their launchers at it.
suites=$(printf '%s\n' "${missing[@]#*@}" sid bookworm | sort -u)
for s in $suites; do with_suite "$s" apt-get -qq update >&2 & done
wait
for s in $suites; do
  pkgs=()
  for w in "${missing[@]}"; do
    [ "${w#*@}" = "$s" ] || continue
    pkgs+=("openjdk-${w%@*}-jre-headless")
    [ "${w%@*}" = 8 ] && pkgs+=(openjdk-8-jdk-headless)
  done
  [ "$s" = sid ] && pkgs+=(libc6 libc-bin libstdc++6 libgcc-s1 zlib1g)
  [ "$s" = bookworm ] && pkgs+=(patchelf)
  mkdir -p "$DEST/.debs/$s"
  # One by one: a missing package must not make the others fail.
  ( cd "$DEST/.debs/$s" && for p in "${pkgs[@]}"; do with_suite "$s" apt-get -qq download "$p" >&2 || say "get-jdks: $s has no $p"; done ) &
done
wait

GLIBC=$DEST/glibc/usr/lib/$MT
if [ ! -e "$GLIBC/libc.so.6" ]; then
  mkdir -p "$DEST/glibc" "$DEST/.tools"
  for p in libc6 libstdc++6 libgcc-s1 zlib1g; do d=$(newest sid $p) && [ -n "$d" ] && dpkg -x "$d" "$DEST/glibc"; done
  d=$(newest bookworm patchelf) && [ -n "$d" ] && dpkg -x "$d" "$DEST/.tools"
fi
PATCHELF=$DEST/.tools/usr/bin/patchelf
LOADER=$(find "$DEST/glibc" -name 'ld-linux-*.so.*' 2>/dev/null | head -1)

# tools VERSION HOME: write wrappers for the tools whose launchers are only in the
# large jdk package; their classes are in every runtime image.
tools() {
  local t
  for t in javac:jdk.compiler/com.sun.tools.javac.Main jar:jdk.jartool/sun.tools.jar.Main jcmd:jdk.jcmd/sun.tools.jcmd.JCmd \
    jps:jdk.jcmd/sun.tools.jps.Jps jstack:jdk.jcmd/sun.tools.jstack.JStack javap:jdk.jdeps/com.sun.tools.javap.Main jfr:jdk.jfr/jdk.jfr.internal.tool.Main; do
    [ -e "$2/bin/${t%%:*}" ] && continue
    printf '#!/bin/sh\nexec "$(dirname "$(readlink -f "$0")")/java" -m %s "$@"\n' "${t#*:}" > "$2/bin/${t%%:*}"
    chmod +x "$2/bin/${t%%:*}"
  done
}

unpack() { # VERSION SUITE
  local v=$1 suite=$2 root="$DEST/.root/$1" home deb link to prog rpath
  deb=$(newest "$suite" "openjdk-$v-jre-headless")
  [ -n "$deb" ] || return 1
  rm -rf "$root" "${DEST:?}/$v"
  mkdir -p "$root"
  dpkg -x "$deb" "$root" || return 1
  if [ "$v" = 8 ]; then dpkg -x "$(newest "$suite" openjdk-8-jdk-headless)" "$root" || return 1; fi
  home="$root/usr/lib/jvm/java-$v-openjdk-$ARCH"
  # Configuration files are absolute links into /etc: point them into the tree.
  find "$root" -type l -lname '/*' | while read -r link; do
    to=$(readlink "$link")
    [ -e "$root$to" ] && ln -sfn "$(realpath --relative-to="$(dirname "$link")" "$root$to")" "$link"
  done
  find "$home" -name jvm.cfg-default | while read -r link; do [ -e "${link%-default}" ] || cp "$link" "${link%-default}"; done
  ln -sfn ".root/$v/usr/lib/jvm/java-$v-openjdk-$ARCH" "$DEST/$v"
  if ! "$DEST/$v/bin/java" -version >/dev/null 2>&1; then
    # Built for a newer C library. Only the launchers are patched; the
    # libraries keep their build-ids, symbols and code.
    find "$home" -type f -perm /111 ! -name '*.so*' | while read -r prog; do
      "$PATCHELF" --print-interpreter "$prog" >/dev/null 2>&1 || continue
      rpath=$("$PATCHELF" --print-rpath "$prog")
      "$PATCHELF" --set-interpreter "$LOADER" --force-rpath --set-rpath "${rpath:+$rpath:}$GLIBC" "$prog"
    done
  fi
  [ "$v" = 8 ] || tools "$v" "$home"
  "$DEST/$v/bin/java" -Xshare:dump >/dev/null 2>&1 # the class data archive that the package makes when it is installed
  local work
  work=$(mktemp -d)
  printf 'public class T{public static void main(String[] a){System.out.println("ok");}}\n' > "$work/T.java"
  if ( cd "$work" && "$DEST/$v/bin/javac" T.java && [ "$("$DEST/$v/bin/java" -cp . T)" = ok ] ) >"$work/out" 2>&1; then
    touch "$DEST/$v/.candid-ok"
    say "get-jdks: JDK $v from $suite: $("$DEST/$v/bin/java" -version 2>&1 | head -1)"
  else
    say "get-jdks: JDK $v from $suite does not run: $(tail -1 "$work/out")"
  fi
  rm -rf "$work"
}
for w in "${missing[@]}"; do unpack "${w%@*}" "${w#*@}" || say "get-jdks: no package for JDK ${w%@*} in ${w#*@}"; done

failed=()
for w in "${WANT[@]}"; do runs "${w%@*}" || failed+=("${w%@*}"); done
rm -rf "$DEST/.debs"
[ ${#failed[@]} -eq 0 ] || { say "get-jdks: not there: ${failed[*]}"; exit 1; }
