#!/usr/bin/env python3
"""Take .NET single-file programs apart, and put them together with another application.

    bundle.py extract PROGRAM DIR
    bundle.py replace PROGRAM APP.dll OUT

replace keeps the host, which has the runtime in it, and the framework of a published single-file
program, and replaces its application by APP.dll. The result is a genuine single-file program.
The format: docs/design/features/host-bundle in dotnet/runtime (Manifest, FileEntry).
"""
import json
import os
import struct
import sys
import zlib

# SHA-256 of ".net core bundle", which the host looks for; the offset of the manifest is before it.
SIGNATURE = bytes.fromhex("8b1202b96a612038727b930214d7a03213f5b9e6efae3318ee3b2dce24b36aae")
ASSEMBLY, NATIVE, DEPS, CONFIG = 1, 2, 3, 4


class Reader:
    def __init__(self, data, at):
        self.data, self.at = data, at

    def number(self, form):
        v = struct.unpack_from("<" + form, self.data, self.at)[0]
        self.at += struct.calcsize("<" + form)
        return v

    def text(self):
        n = shift = 0
        while True:
            c = self.number("B")
            n |= (c & 127) << shift
            shift += 7
            if c < 128:
                break
        s = self.data[self.at : self.at + n].decode()
        self.at += n
        return s


def text(s):
    b, n, out = s.encode(), len(s.encode()), b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n]) + b


def parse(data):
    at = data.find(SIGNATURE) - 8
    r = Reader(data, struct.unpack_from("<q", data, at)[0])
    head = {"at": at, "major": r.number("I"), "minor": r.number("I"), "flags": 0}
    count = r.number("i")
    head["id"] = r.text()
    if head["major"] >= 2:
        for _ in range(4):
            r.number("q")
        head["flags"] = r.number("Q")
    files = []
    for _ in range(count):
        f = {"offset": r.number("q"), "size": r.number("q"), "packed": 0}
        if head["major"] >= 6:
            f["packed"] = r.number("q")
        f["type"], f["path"] = r.number("B"), r.text()
        files.append(f)
    return head, files


def content(data, f):
    b = data[f["offset"] : f["offset"] + (f["packed"] or f["size"])]
    return zlib.decompress(b, -15) if f["packed"] else b


def extract(program, to):
    data = open(program, "rb").read()
    for f in parse(data)[1]:
        path = os.path.normpath(os.path.join(to, f["path"]))
        if not path.startswith(os.path.normpath(to) + os.sep):
            sys.exit(f"{f['path']} leads out of {to}")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as out:
            out.write(content(data, f))


def replace(program, app, to):
    data = open(program, "rb").read()
    head, files = parse(data)
    name = os.path.basename(app)[: -len(".dll")]
    host = bytearray(data[: min(f["offset"] for f in files)])
    deps_file = next(f for f in files if f["type"] == DEPS)
    deps = json.loads(content(data, deps_file).decode("utf-8-sig"))
    config = json.loads(content(data, next(f for f in files if f["type"] == CONFIG)).decode("utf-8-sig"))
    # The host has the name of its application in a field of fixed size.
    old = deps_file["path"].replace(".deps.json", ".dll").encode()
    at = host.find(old + b"\0" * 64)
    if at < 0:
        sys.exit("the name of the application is not in the host")
    new = (name + ".dll").encode()
    host[at : at + max(len(old), len(new))] = new.ljust(max(len(old), len(new)), b"\0")
    target, libraries = next((k, v) for k, v in deps["targets"].items() if v)
    keep = {k: v for k, v in libraries.items() if k.startswith("runtimepack.")}
    ours = {name + "/1.0.0": {"dependencies": {k.split("/")[0]: k.split("/")[1] for k in keep}, "runtime": {name + ".dll": {}}}, **keep}
    nothing = {"serviceable": False, "sha512": ""}
    deps = {
        "runtimeTarget": deps["runtimeTarget"],
        "targets": {k: ours if k == target else {} for k in deps["targets"]},
        "libraries": {name + "/1.0.0": {"type": "project", **nothing}, **{k: {"type": "runtimepack", **nothing} for k in keep}},
    }
    config["runtimeOptions"]["configProperties"] = {"System.Globalization.Invariant": True}
    wanted = set()
    for v in keep.values():
        wanted |= set(v.get("runtime", {})) | set(v.get("native", {}))
    items = [(ASSEMBLY, name + ".dll", open(app, "rb").read())]
    items += [(f["type"], f["path"], content(data, f)) for f in files if f["path"] in wanted and f["type"] in (ASSEMBLY, NATIVE)]
    items.append((DEPS, name + ".deps.json", json.dumps(deps).encode()))
    items.append((CONFIG, name + ".runtimeconfig.json", json.dumps(config).encode()))
    entries = []
    for kind, path, b in items:
        host += b"\0" * (-len(host) % 4096)
        entries.append((len(host), len(b), kind, path))
        host += b
    manifest = len(host)
    struct.pack_into("<q", host, head["at"], manifest)
    host += struct.pack("<IIi", head["major"], head["minor"], len(entries)) + text(head["id"])
    if head["major"] >= 2:
        for kind in (DEPS, CONFIG):
            offset, size = next(e[:2] for e in entries if e[2] == kind)
            host += struct.pack("<qq", offset, size)
        host += struct.pack("<Q", head["flags"])
    for offset, size, kind, path in entries:
        host += struct.pack("<qq", offset, size) + (struct.pack("<q", 0) if head["major"] >= 6 else b"") + bytes([kind]) + text(path)
    with open(to, "wb") as out:
        out.write(host)
    os.chmod(to, 0o755)


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "extract":
        extract(*sys.argv[2:])
    elif len(sys.argv) == 5 and sys.argv[1] == "replace":
        replace(*sys.argv[2:])
    else:
        sys.exit(__doc__)
