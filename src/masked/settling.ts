// Mail of masked addresses leaves nothing behind: when a received mail is processed, and when a message that carried it on
// has arrived or failed for good, whose addresses it held and what it said are forgotten. A trace is the row that makes
// sure of it, also when a process dies.
import { forgetRecipients } from "../events/events.ts";
import { type EndedMessage, findEnded, forgetMessages } from "../sending/sending.ts";
import { type BouncePorts, type Fault, takeBounce } from "./bounces.ts";
import type * as carry from "./carry.ts";
import * as queries from "./trace-queries.ts";

export type TracePorts = BouncePorts & {
  /** Forgets received mails that are processed. */
  forgetReceived(keys: readonly { org_id: string; id: string }[]): Promise<void>;
  /** Forgets what a message kept outside its row. */
  forgetBlobs(orgId: string, ownerId: string): Promise<void>;
};

const AT_ONCE_MAX = 200;
const LEASE_MS = 60_000;
const LOOK_MS_MIN = 2_000;
const LOOK_MS_MAX = 600_000;
/** What a test would have sent can be looked at for an hour. */
const SIMULATED_KEPT_MS = 3_600_000;

/** Looks at what is due, of all organizations: bounces are taken, what is over is forgotten. How many were due. */
export async function settleTraces(world: carry.CarryWorld, ports: TracePorts): Promise<number> {
  const now = world.clock.now();
  const claim = { now: new Date(now), until: new Date(now + LEASE_MS), limit: AT_ONCE_MAX };
  const traces = await queries.claimTraces(world.db, claim);
  const [received, sent] = [traces.filter(isReceived), traces.filter((trace) => !isReceived(trace))];
  const ended = new Map((await findEnded(world.db, sent)).map((one) => [one.id, one]));
  const over: queries.TraceRow[] = [];
  const failures: unknown[] = [];
  for (const trace of sent) {
    // One that fails must not hold up the others; it is due again when its lease is over.
    const isOver = settle(world, ports, trace, ended.get(trace.id)).catch((error: unknown) => {
      failures.push(error);
      return false;
    });
    if (await isOver) over.push(trace);
  }
  await forget(world, ports, { received, over });
  if (failures.length > 0) throw failures[0];
  return traces.length;
}

function isReceived({ kind }: queries.TraceRow): boolean {
  return kind === "received";
}

/** Takes the bounce if it is one; true when the message is over. */
async function settle(
  world: carry.CarryWorld,
  ports: TracePorts,
  trace: queries.TraceRow,
  ended: EndedMessage | undefined,
): Promise<boolean> {
  const age = world.clock.now() - trace.created_at.getTime();
  const isKept = ended?.status === "simulated" && age < SIMULATED_KEPT_MS;
  if (!ended || isKept) {
    const waitMs = isKept ? SIMULATED_KEPT_MS - age : Math.min(Math.max(age, LOOK_MS_MIN), LOOK_MS_MAX);
    await queries.setDue(world.db, [trace], new Date(world.clock.now() + waitMs));
    return false;
  }
  const fault = faultOf(ended);
  if (fault) await takeBounce(world, ports, trace, fault);
  return true;
}

type Forgotten = { received: readonly queries.TraceRow[]; over: readonly queries.TraceRow[] };

async function forget(world: carry.CarryWorld, ports: TracePorts, { received, over }: Forgotten): Promise<void> {
  if (received.length > 0) {
    await ports.forgetReceived(received);
    await queries.setDue(world.db, received, null);
  }
  if (over.length === 0) return;
  const withBlobs = await world.db.transaction(async (tx) => {
    await forgetRecipients(tx, over);
    await queries.setDue(tx, over, null);
    return forgetMessages(tx, over);
  });
  for (const { org_id, id } of withBlobs) await ports.forgetBlobs(org_id, id);
}

function faultOf({ status, bounce_type, diag_code, bounce_class }: EndedMessage): Fault | null {
  if (!["bounced", "failed", "expired"].includes(status)) return null;
  return { hard: bounce_type === "hard", code: diag_code, class: bounce_class };
}
