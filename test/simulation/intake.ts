// How mail comes into the queue: as the accepting side does it (src/sending/accept/accept.ts), owned already and handed over in
// memory where the engine of the process has room, else for whoever claims it. A client repeats what was not answered. Nobody
// sees a row before its commit, and whether its lane must be woken was decided before that, as in PostgreSQL.
import { DEFAULT_SOURCE_ID, isLaneGone, type Lane, MTA_CHANNEL } from "../../src/outbound/outbound.ts";
import type { SlowStatement, Statement } from "./database.ts";
import type { OutboundPlay } from "./outbound-play.ts";
import { aboutOf, BODY, type DeliveryRow, keyOf, type OutboundRows, wake } from "./outbound-rows.ts";
import type { Process } from "./processes.ts";

export type Mail = {
  n: number;
  org_id: string;
  domain: string;
  class: number;
  /** By the monotonic clock; null until the client has its answer. */
  accepted_ms: number | null;
};

const INSERT = "model: accept";
const FIND = "model: was it accepted?";
const KEEP_TRYING_MS = 72 * 3_600_000;
const AGAIN_MS = 700;
const ANSWER_WITHIN_MS = 10_000;

export function messageIdOf(n: number): string {
  return `00000000-0000-7000-9000-${String(n).padStart(12, "0")}`;
}

export function emailOf({ n, domain }: Pick<Mail, "n" | "domain">): string {
  return `m${n}@${domain}`;
}

/** A function that gets a mail accepted, whatever it takes. */
export function accepting(play: OutboundPlay): (mail: Mail) => void {
  const { universe, processes, server, rows } = play;
  server.slow.set(INSERT, insertion(rows, play.sabotage));
  server.statements.set(FIND, finding(rows));

  function attempt(mail: Mail): void {
    const running = processes.running();
    if (running.length === 0) {
      universe.after(AGAIN_MS, null, () => attempt(mail));
      return;
    }
    const process = universe.chance.pick(running);
    universe.after(ANSWER_WITHIN_MS, null, () => {
      if (mail.accepted_ms === null) attempt(mail);
    });
    universe.after(0, process.life, () => {
      void acceptBy(process, mail, universe.chance.float() < 0.7).then((isAccepted) => {
        if (isAccepted && mail.accepted_ms === null) mail.accepted_ms = universe.monotonic();
      });
    });
  }
  return attempt;
}

/** False when it is not known to be accepted: the client asks again. */
async function acceptBy({ world, engine, findLane }: Process, mail: Mail, isTogether: boolean): Promise<boolean> {
  if (!engine) return false;
  const { org_id, domain } = mail;
  const name = { org_id, source_id: DEFAULT_SOURCE_ID, domain, class: 0 };
  const lane = await findLane(name).catch(() => null);
  if (!lane) return false;
  const owner = isTogether ? engine.reserve(lane, BODY.length) : null;
  const row = toDelivery(mail, lane, { owner, now: world.clock.now() });
  const result = await insert(world, row);
  if (result === "no lane") findLane.forget?.(name);
  if (owner !== null && result === "inserted") {
    const dates = { created_at: new Date(row.created_at), expires_at: new Date(row.expires_at) };
    engine.offer(lane, { ...row, ...dates, owner, return_path_host: "bounces.example", mime: BODY, about: aboutOf() });
  } else if (owner !== null) engine.release(lane, BODY.length);
  if (owner === null && result === "inserted") {
    engine.wake();
    world.db.query("select pg_notify($1, '')", [MTA_CHANNEL]).catch(() => undefined);
  }
  return result === "inserted" || result === "known";
}

type Inserted = "inserted" | "known" | "unknown" | "no lane";

/** When the answer is lost, the id tells what happened. */
async function insert({ db }: Process["world"], row: DeliveryRow): Promise<Inserted> {
  try {
    return (await db.execute(INSERT, [row])) === 1 ? "inserted" : "known";
  } catch (err) {
    if (isLaneGone(err)) return "no lane";
    const found = await db.query(FIND, [row]).catch(() => null);
    if (found === null) return "unknown";
    return found.length > 0 ? "inserted" : "unknown";
  }
}

function toDelivery(mail: Mail, lane: Lane, { owner, now }: { owner: number | null; now: number }): DeliveryRow {
  return {
    org_id: mail.org_id,
    message_id: messageIdOf(mail.n),
    position: 0,
    lane_id: lane.id,
    email: emailOf(mail),
    due_at: now,
    created_at: now,
    expires_at: now + KEEP_TRYING_MS,
    attempts: 0,
    owner,
    deferred_event_at: null,
    absent_since: null,
  };
}

/** As the accepting statement: the rows, and the lane's wake if it looked later than they are due. */
function insertion(rows: OutboundRows, { lanes: check }: OutboundPlay["sabotage"]): SlowStatement {
  const { writer, deliveries, recipients, lanes } = rows;
  return ([row]) => {
    const key = keyOf(row.message_id, row.position);
    if (lanes.get(row.lane_id)?.retired !== null && check !== "unchecked") throw new NoLane();
    const isAsleep = row.owner === null && (lanes.get(row.lane_id)?.next_at ?? 0) > row.due_at;
    rows.last_id += 1;
    const looked = rows.last_id;
    rows.open.add(looked);
    return () => {
      rows.open.delete(looked);
      if (recipients.has(key)) return 0;
      const { org_id, message_id, position, email } = row;
      writer.put(deliveries, key, { ...row });
      writer.put(recipients, key, { org_id, message_id, position, email, status: "queued" });
      if (isAsleep) wake(rows, row.lane_id, row.due_at);
      return 1;
    };
  };
}

/** What the column says of it. */
class NoLane extends Error {
  code = "23502";
  table = "delivery";
  column = "lane_id";
}

function finding({ deliveries }: OutboundRows): Statement {
  return ([row]) => {
    const found = deliveries.get(keyOf(row.message_id, row.position));
    return found && found.owner === row.owner && found.created_at === row.created_at ? [found] : [];
  };
}
