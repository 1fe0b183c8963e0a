// The cells of a run: on one Citus, each a schema and a role of the same name with a Postern of its own, of which one process
// runs on each of two machines, and its organizations. Each cell has receiving servers of its own, so that what arrives is
// counted by cell.
import { addCell, listCells, moveCell, type Server } from "../../src/platform/database/citus/cells.ts";
import { addReceivingDomain } from "../faults/mail-in.ts";
import { type Stage, setStage } from "../faults/stage.ts";
import { addTenant } from "../faults/tenant.ts";
import { type Citus, withSchema } from "../support/citus.ts";
import { freePort } from "../support/free-port.ts";
import { ask, type Posterns } from "../support/postern-process.ts";
import { createTimeline, type Timeline } from "./timeline.ts";

export type Organization = { name: string; settings: Posterns; sends_from: string; recipient: string };

export type Cell = {
  name: string;
  stage: Stage;
  organizations: Organization[];
  /** Of both machines, the first one's first. */
  base_urls: string[];
  mx_ports: number[];
  /** Of mail that was accepted from the organizations, and for them. */
  sent: Timeline;
  received: Timeline;
};

/** What a cell's process is called on the machine that is lost. */
export const SECOND_MACHINE = "second machine";

/** Of each process: all of them share the connections of three servers. */
const CONNECTIONS = "12";
const EVENTS = ["email.delivered", "email.bounced", "email.deferred"];

/** Makes one with its schema on this worker, counted from 0. */
export async function makeCell(
  citus: Citus,
  { name, worker, organizations }: { name: string; worker: number; organizations: number },
): Promise<Cell> {
  const url = await addCell(citus.adminUrlOf(), { name, password: name });
  const to = workerAt(citus, worker);
  if ((await placeOf(citus, name)).port !== to.port) await moveCell(citus.adminUrlOf(), { name, to });
  const stage = await setStage({
    roles: ["all"],
    postgres: { ...citus.coordinator, url, admin_url: withSchema(citus.adminUrlOf(), name) },
    env: { POSTERN_DATABASE_CONNECTIONS: CONNECTIONS },
  });
  try {
    const places = {
      POSTERN_HTTP: await ownPlace(),
      POSTERN_MX: await ownPlace(),
      POSTERN_SUBMISSION: await ownPlace(),
    };
    await stage.start("all", SECOND_MACHINE, { ...places, POSTERN_INTERNAL: "127.0.0.1:0" });
    return {
      name,
      stage,
      organizations: await addOrganizations(stage, name, organizations),
      base_urls: [stage.settings.base_url, `http://${places.POSTERN_HTTP}`],
      mx_ports: [stage.settings.env.POSTERN_MX, places.POSTERN_MX].map((place) => Number(place?.split(":")[1])),
      sent: createTimeline(),
      received: createTimeline(),
    };
  } catch (error) {
    await stage.close();
    throw error;
  }
}

async function ownPlace(): Promise<string> {
  return `127.0.0.1:${await freePort()}`;
}

/** Where Citus reaches this worker. */
export function workerAt({ workers }: Citus, worker: number): Server {
  return { host: "127.0.0.1", port: (workers[worker] as Citus["coordinator"]).port };
}

/** The server that has the cell. */
export async function placeOf(citus: Citus, name: string): Promise<Server> {
  const { cells } = await listCells(citus.adminUrlOf());
  const found = cells.find((cell) => cell.name === name);
  if (!found) throw new Error(`Citus has no cell ${name}`);
  return { host: found.host, port: found.port };
}

async function addOrganizations(stage: Stage, cell: string, count: number): Promise<Organization[]> {
  const made: Organization[] = [];
  for (let n = 1; n <= count; n += 1) {
    const domain = n === 1 ? stage.domain : `shop-${n}.example`;
    const settings = n === 1 ? stage.settings : await addTenant(stage, domain);
    if (n > 1) await addWebhook(stage, settings);
    const recipient = await addReceivingDomain(stage, settings, `in-${n}.example`);
    made.push({ name: `${cell}-organization-${n}`, settings, sends_from: `Shop <orders@${domain}>`, recipient });
  }
  return made;
}

/** The stage's own organization has one. */
async function addWebhook(stage: Stage, settings: Posterns): Promise<void> {
  const made = await ask(settings, "POST", "/v1/webhooks", { url: `${stage.receiver.url}/hook`, events: EVENTS });
  if (made.status !== 201) throw new Error(`no webhook: ${JSON.stringify(made.body)}`);
}
