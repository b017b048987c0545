// Makes static/vendor from the packages of package.json. Run: npm ci && npm run build
import { build } from "esbuild";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const packages = join(here, "node_modules");
const target = join(here, "..", "..", "static", "vendor");

// The icons pages may name (`{% icon "check" %}`), all of Tabler's outline set.
const ICONS = [
  "activity", "alert-triangle", "arrow-back-up", "arrow-down", "arrow-right", "arrow-up", "arrows-diff", "ban",
  "book", "bug", "check", "chevron-down", "chevron-left", "chevron-right", "circle", "circle-check", "circle-dashed",
  "circle-dot", "circle-x", "clock", "code", "copy", "database", "device-desktop", "dots", "download", "edit", "eye",
  "eye-off", "file-diff", "file-import", "filter", "git-commit", "hammer", "help", "history", "home", "info-circle",
  "key", "layers-intersect", "link", "lock", "lock-open", "logout", "menu-2", "minus", "moon", "notes",
  "player-pause", "plug", "plug-connected", "plus", "question-mark", "refresh", "rocket", "route", "search", "server",
  "settings", "shield", "shield-lock", "stack-2", "sun", "table", "trash", "upload", "user", "users", "x",
];

async function sprite() {
  const symbols = await Promise.all(ICONS.map(async (name) => {
    const text = await readFile(join(packages, "@tabler/icons/icons/outline", `${name}.svg`), "utf8");
    const inner = text.replace(/<!--[\s\S]*?-->/g, "").match(/<svg[^>]*>([\s\S]*)<\/svg>/)[1];
    const paths = inner.replace(/<path stroke="none" d="M0 0h24v24H0z" fill="none"\s*\/>/g, "").replace(/\s*\n\s*/g, "");
    return `<symbol id="${name}" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2"` +
      ` stroke-linecap="round" stroke-linejoin="round">${paths}</symbol>`;
  }));
  await writeFile(join(target, "icons.svg"), `<svg xmlns="http://www.w3.org/2000/svg">\n${symbols.join("\n")}\n</svg>\n`);
}

async function stylesheet() {
  const text = await readFile(join(packages, "@tabler/core/dist/css/tabler.min.css"), "utf8");
  await writeFile(join(target, "tabler.min.css"), text.replace(/\/\*# sourceMappingURL=.*?\*\//g, "").trimEnd() + "\n");
}

await mkdir(target, { recursive: true });
await sprite();
await stylesheet();
await copyFile(join(packages, "htmx.org/dist/htmx.min.js"), join(target, "htmx.min.js"));
await copyFile(join(packages, "uplot/dist/uPlot.iife.min.js"), join(target, "uplot.min.js"));
await copyFile(join(packages, "uplot/dist/uPlot.min.css"), join(target, "uplot.min.css"));
await build({
  entryPoints: [join(here, "codemirror.mjs")],
  outfile: join(target, "codemirror.min.js"),
  bundle: true, format: "esm", minify: true, target: "es2022", legalComments: "none",
});
