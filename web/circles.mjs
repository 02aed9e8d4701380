// Fails if files of src import each other in a circle: each must be readable before what imports it.

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

const sources = (dir) => readdirSync(dir, { withFileTypes: true }).flatMap((e) => {
  const path = join(dir, e.name);
  return e.isDirectory() ? sources(path) : e.name.endsWith(".ts") ? [path] : [];
});
const imports = (file) => Array.from(readFileSync(file, "utf8").matchAll(/^(?:import|export)\s[^;]*?from\s+"(\.[^"]+)"/gm), (m) => `${normalize(join(dirname(file), m[1]))}.ts`);

const files = new Map(sources("src").map((f) => [f, imports(f)]));
const done = new Set(); // files that lead to no circle
const way = []; // from the first file to the one that is looked at
let found = 0;

const visit = (file) => {
  const at = way.indexOf(file);
  if (at >= 0) {
    console.error(`circle of imports: ${[...way.slice(at), file].join(" -> ")}`);
    found++;
    return;
  }
  if (done.has(file)) return;
  way.push(file);
  for (const next of files.get(file) ?? []) visit(next);
  way.pop();
  done.add(file);
};
for (const file of files.keys()) visit(file);
process.exitCode = found ? 1 : 0;
