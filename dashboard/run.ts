// npm run dashboard -- <build|dev|types|e2e|budget> [--json] [--look pages]: everything about the dashboard that is done from a terminal.
import { resolve } from "node:path";
import { readOptions } from "../test/support/options.ts";

const USE = "npm run dashboard -- <build|dev|types|e2e|budget> [--look pages] [--json]";
const { values, positionals } = readOptions(
  {
    allowPositionals: true,
    options: { json: { type: "boolean", default: false }, look: { type: "string" } },
  },
  USE,
);
const configFile = resolve(import.meta.dirname, "vite.config.ts");

const COMMANDS: Record<string, { what: string; run: () => Promise<number> }> = {
  build: { what: "writes dashboard/dist, as npm ci does", run: build },
  dev: { what: "serves it while it is changed, beside the server at POSTERN_BASE_URL", run: serve },
  types: { what: "writes the types of /v1 and of /dashboard/api", run: types },
  e2e: { what: "plays the stories in Chromium and looks at every page", run: endToEnd },
  budget: { what: "compares what a browser loads with the limits", run: budget },
};

const command = COMMANDS[positionals[0] ?? ""];
if (command === undefined) {
  console.error("npm run dashboard -- <command> [--json]\n");
  for (const [name, { what }] of Object.entries(COMMANDS)) console.error(`  ${name.padEnd(8)} ${what}`);
  process.exitCode = 2;
} else process.exitCode = await command.run();

async function build(): Promise<number> {
  const vite = await import("vite");
  await vite.build({ configFile, logLevel: "error" });
  return 0;
}

async function serve(): Promise<number> {
  const vite = await import("vite");
  const server = await (await vite.createServer({ configFile })).listen();
  server.printUrls();
  return new Promise(() => undefined);
}

async function types(): Promise<number> {
  const { saveTypes } = await import("./api/generate.ts");
  await saveTypes();
  return 0;
}

async function endToEnd(): Promise<number> {
  await build();
  const { runEndToEnd } = await import("./test/e2e.ts");
  return runEndToEnd({ ...values, only: positionals[1] });
}

async function budget(): Promise<number> {
  await build();
  const { checkBudget } = await import("./test/budget.ts");
  return checkBudget(values);
}
