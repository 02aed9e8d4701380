// Builds the pages: `node build.mjs` writes dist, which is committed;
// `node build.mjs --check` says whether dist is what would be built now;
// `node build.mjs --test` bundles the unit tests for node's own test runner.
import { build } from "esbuild";
import { readdirSync, readFileSync, rmSync } from "node:fs";

const here = new URL(".", import.meta.url).pathname;
process.chdir(here);

if (process.argv.includes("--test")) {
  rmSync("dist-test", { recursive: true, force: true });
  await build({
    entryPoints: readdirSync("test").filter((f) => f.endsWith(".test.ts")).map((f) => `test/${f}`),
    outdir: "dist-test",
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    sourcemap: "inline",
    logLevel: "warning",
  });
} else {
  const check = process.argv.includes("--check");
  const built = await build({
    write: !check,
    entryPoints: [
      { in: "src/page/main.ts", out: "flame" }, { in: "src/page/flame.css", out: "flame" },
      { in: "src/store/main.ts", out: "store" }, { in: "src/store/store.css", out: "store" },
      { in: "src/view/main.ts", out: "view" }, { in: "src/view/view.css", out: "view" },
    ],
    outdir: "dist",
    bundle: true,
    minify: true,
    format: "iife",
    target: ["chrome103", "firefox113", "safari16.4"],
    charset: "ascii",
    legalComments: "none",
    logLevel: "warning",
  });
  for (const f of check ? built.outputFiles : []) {
    if (readFileSync(f.path, "utf8") !== f.text) {
      console.error(`${f.path} is not what its sources give: run npm run build`);
      process.exitCode = 1;
    }
  }
}
