// `postern cells door` and `postern cells nginx`: one address for several cells (docs/scaling.md).
import { resolve } from "node:path";
import type { Command } from "commander";
import { type DoorCell, readCells, splitPlace } from "../cells/cell-list.ts";
import { startDoor } from "../cells/door.ts";
import { cellFinder } from "../cells/find-cell.ts";
import { nginxConf } from "../cells/nginx.ts";
import { createLog } from "../platform/process/log.ts";
import { UsageError } from "../platform/process/usage-error.ts";

const DOOR = "127.0.0.1:9190";
const CELLS = "the list of cells, in JSON";

type NginxFlags = {
  cells: string;
  door: string;
  name: string;
  certificate: string;
  key: string;
  modules: string;
  json?: boolean;
};

/** Puts both into `cells`. */
export function addDoorCommands(cells: Command): void {
  cells
    .command("door")
    .description(
      "answer nginx, which stands before several cells, which of them a request, a login or a mail is for; runs until it is stopped",
    )
    .requiredOption("--cells <file>", CELLS)
    .option("--listen <host:port>", "the address to listen on, which nginx and the cells ask", DOOR)
    .action(({ cells: file, listen }: { cells: string; listen: string }) => openDoor(readCells(file), listen));
  cells
    .command("nginx")
    .description("print the configuration of the nginx before several cells")
    .requiredOption("--cells <file>", CELLS)
    .requiredOption("--name <host>", "what its SMTP greeting says")
    .requiredOption("--certificate <file>", "of all its names, PEM")
    .requiredOption("--key <file>", "of the certificate")
    .option("--door <host:port>", "where `postern cells door` listens", DOOR)
    .option(
      "--modules <folder>",
      "the folder of nginx's dynamic modules; none if its mail module is compiled in",
      "modules",
    )
    .option("--json", "one JSON object")
    .action(({ cells: file, modules, json, ...given }: NginxFlags) => {
      readPlace(given.door, "--door");
      if (!/^[A-Za-z0-9.-]+$/.test(given.name)) throw new UsageError(`--name ${given.name} is not a host name.`);
      // nginx looks for others beside its own configuration.
      const [certificate, key] = [resolve(given.certificate), resolve(given.key)];
      const options = {
        ...given,
        certificate,
        key,
        cells: readCells(file),
        modules: modules === "none" ? null : modules,
      };
      const conf = nginxConf(options);
      process.stdout.write(json ? `${JSON.stringify({ conf })}\n` : conf);
    });
}

async function openDoor(cells: readonly DoorCell[], listen: string): Promise<void> {
  const log = createLog({ level: "info", role: "door" });
  const onFailure = (err: unknown): void => log.error({ err }, "the door failed to answer");
  const door = await startDoor({ cells, find: cellFinder(cells), ...readPlace(listen, "--listen"), onFailure }).catch(
    (error: Error) => {
      throw new UsageError(`--listen ${listen}: ${error.message}`);
    },
  );
  log.info({ address: door.address, cells: cells.map(({ name }) => name) }, "the door of these cells is open");
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void door.stop());
}

function readPlace(text: string, option: string): { host: string; port: number } {
  const place = splitPlace(text);
  if (place === null) throw new UsageError(`${option} ${text} is not host:port.`);
  return place;
}
