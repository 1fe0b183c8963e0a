// The client commands alone, as the npm package postern-mail-cli: for the machines of developers, who talk to a Postern that
// runs elsewhere. The Node library that it stands on is compiled into it, so that both are of one version.
import { execFileSync, spawn } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inheritedEnv } from "../test/support/inherited-env.ts";
import { compile, copy, emptied, packPackage, ROOT, readJson, refuseOtherVersion, writeJson } from "./package.ts";
import { scratchFolder, type Tried, tryOut } from "./try.ts";

const ENTRY = "clients/cli/main";
/** What the commands import; the versions are those of package.json. */
const NEEDS = ["@modelcontextprotocol/server", "commander", "diff"];
/** Node 22 knows no `using`, for example. */
const SYNTAX = "es2023";
/** What commander runs on. */
const ENGINES = { node: ">=22.12" };

type Manifest = { version: string; license: string; dependencies: Record<string, string> };

/** `postern-mail-cli-<version>.tgz` in `out`. */
export function buildCli(out: string, work: string): string {
  const tree = emptied(join(work, "cli"));
  compile(tree, [`${ENTRY}.ts`], SYNTAX);
  for (const file of ["LICENSE", "clients/cli/operations.json"]) copy(file, tree);
  copy("clients/cli/README.md", tree, "README.md");
  chmodSync(join(tree, `${ENTRY}.js`), 0o755);
  const { version, license, dependencies } = readJson<Manifest>("package.json");
  writeJson(join(tree, "package.json"), {
    name: "postern-mail-cli",
    version,
    description: "Command line for Postern: send mail, watch it arrive, and learn why it did not",
    license,
    type: "module",
    engines: ENGINES,
    bin: { postern: `./${ENTRY}.js` },
    dependencies: Object.fromEntries(NEEDS.map((name) => [name, dependencies[name]])),
  });
  return packPackage(tree, out);
}

/** Installed in an empty folder, and the mail of the try is sent with it, to the Postern of this tree. */
export async function tryCli(file: string): Promise<Tried> {
  using undo = new DisposableStack();
  const folder = scratchFolder(undo);
  writeFileSync(join(folder, "package.json"), "{}\n");
  const install = ["install", "--ignore-scripts", "--no-audit", "--no-fund", file];
  execFileSync("npm", install, { cwd: folder, stdio: "ignore" });
  const run = (words: string[], env: NodeJS.ProcessEnv = {}) =>
    execFileSync(join(folder, "node_modules/.bin/postern"), words, {
      cwd: folder,
      env: { ...inheritedEnv(), HOME: folder, ...env },
    }).toString();
  refuseOtherVersion(run(["--version"]));
  return await tryOut(
    (env) =>
      spawn(process.execPath, [join(ROOT, "src/main.ts"), "start"], {
        env: { ...inheritedEnv(), ...env },
        stdio: ["ignore", "pipe", "pipe"],
      }),
    join(folder, "data"),
    {
      send: ({ base_url, live_key }, { from, to, subject, text_body }) => {
        const words = ["--from", from, "--to", ...to, "--subject", subject, "--text", text_body];
        run(["send", ...words], { POSTERN_API_KEY: live_key, POSTERN_BASE_URL: base_url });
      },
    },
  );
}
