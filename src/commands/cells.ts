// `postern cells`: what Citus does with the schema of this database, where DATABASE_URL names a coordinator (docs/scaling.md).
import { randomBytes } from "node:crypto";
import type { Command } from "commander";
import {
  addCell,
  CellProblem,
  distribute,
  listCells,
  moveCell,
  type Server,
} from "../platform/database/citus/cells.ts";
import { UsageError } from "../platform/process/usage-error.ts";
import { addDoorCommands } from "./cells-door.ts";
import { commandConfig } from "./command-config.ts";
import { explained } from "./with-world.ts";

/** Puts them into the program. */
export function addCellCommands(program: Command): void {
  const cells = program.command("cells").description("on Citus: where the schema of this database is kept");
  cells
    .command("list")
    .description("every cell with its server and size, and the servers that may have cells")
    .option("--json", "one JSON object")
    .action(({ json }: { json?: boolean }) => run(async (url) => show(await listCells(url), json ?? false)));
  cells
    .command("add")
    .argument("<cell>", "its name: that of its role and schema")
    .description("make an empty cell for another Postern; DATABASE_URL names a superuser")
    .option("--json", "one JSON object")
    .action((name: string, { json }: { json?: boolean }) => run((url) => add(url, name, json ?? false)));
  cells
    .command("distribute")
    .description("give the schema of this database to Citus; no process may use it meanwhile")
    .option("--json", "one JSON object")
    .action(({ json }: { json?: boolean }) =>
      run(async (url) => {
        const schema = await distribute(url);
        console.log(json ? JSON.stringify({ schema }) : `Citus keeps the schema ${schema} now.`);
      }),
    );
  cells
    .command("move")
    .argument("<cell>", "its name, as in the list")
    .requiredOption("--to <host:port>", "the server that it moves to")
    .description("move a cell to another server while it is used; DATABASE_URL names a superuser")
    .option("--json", "one JSON object")
    .action((name: string, { to, json }: { to: string; json?: boolean }) =>
      run(async (url) => {
        await moveCell(url, { name, to: readServer(to) });
        console.log(json ? JSON.stringify({ cell: name, server: to }) : `${name} is on ${to} now.`);
      }),
    );
  addDoorCommands(cells);
}

async function add(url: string, name: string, json: boolean): Promise<void> {
  const password = randomBytes(24).toString("base64url");
  const database_url = await addCell(url, { name, password });
  const text = `The cell ${name} was made. Its Postern has this address, which is shown once, and a master key and host names of its own:`;
  console.log(json ? JSON.stringify({ cell: name, database_url }) : `${text}\n  DATABASE_URL=${database_url}`);
}

async function run(work: (url: string) => Promise<void>): Promise<void> {
  const config = await commandConfig();
  if (!config.database_url)
    throw new UsageError("DATABASE_URL must name a Citus coordinator: the embedded database has none.");
  try {
    await explained(config, work(config.database_url));
  } catch (error) {
    if (error instanceof CellProblem) throw new UsageError(error.message);
    throw error;
  }
}

function readServer(text: string): Server {
  const found = /^(.+):(\d{1,5})$/.exec(text);
  if (!found) throw new UsageError(`--to ${text} is not host:port.`);
  return { host: found[1] as string, port: Number(found[2]) };
}

function show({ cells, servers }: Awaited<ReturnType<typeof listCells>>, json: boolean): void {
  if (json) {
    console.log(JSON.stringify({ cells, servers }));
    return;
  }
  for (const { name, host, port, bytes, tables } of cells)
    console.log(`${name} on ${host}:${port}: ${tables} tables, ${Math.ceil(bytes / 1e6)} MB`);
  if (cells.length === 0) console.log("There is no cell yet: postern cells distribute");
  console.log(`Servers: ${servers.map(({ host, port }) => `${host}:${port}`).join(", ") || "none"}`);
}
