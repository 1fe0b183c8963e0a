// Mail of masked addresses leaves nothing behind: when a received mail is processed, and when a message that carried it on
// has arrived or failed for good, whose addresses it held and what it said are forgotten. A trace is the row that makes
// sure of it, also when a process dies.
import { forgetRecipients } from "../../events/events.ts";
import { type EndedMessage, findDeferred, findEnded, forgetMessages } from "../../sending/sending.ts";
import type * as carry from "../carry/carry.ts";
import { type Fault, takeBounce } from "./bounces.ts";
import type { TracePorts } from "./ports.ts";
import * as queries from "./trace-queries.ts";

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
  const later: (queries.TraceRow & { due_at: Date })[] = [];
  const failures: unknown[] = [];
  for (const trace of sent) {
    const end = ended.get(trace.id);
    if (!end || isKept(end, now - trace.created_at.getTime())) {
      later.push({ ...trace, due_at: nextLook(now, trace, end) });
      continue;
    }
    const failure = await takeFault(world, ports, trace, end);
    if (failure === null) over.push(trace);
    else failures.push(failure);
  }
  if (later.length > 0) await queries.setDue(world.db, later);
  await tellOutcomes(world, sent, ended);
  await forget(world, ports, { received, over });
  if (failures.length > 0) throw failures[0];
  return traces.length;
}

/** The entries of forwards and replies say what became of them: on its way, deferred by a server, given up. */
async function tellOutcomes(
  world: Pick<carry.CarryWorld, "db">,
  sent: readonly queries.TraceRow[],
  ended: ReadonlyMap<string, EndedMessage>,
): Promise<void> {
  const carried = sent.filter(({ kind }) => kind === "forward" || kind === "reply");
  const open = carried.filter(({ id }) => !ended.has(id));
  const deferred = new Set((await findDeferred(world.db, open)).map(({ id }) => id));
  const outcomes = carried.map(({ org_id, id }): queries.Outcome => {
    const end = ended.get(id);
    return { org_id, id, outcome: end ? (isGivenUp(end) ? "failed" : "sent") : deferred.has(id) ? "deferred" : "sent" };
  });
  if (outcomes.length > 0) await queries.setOutcomes(world.db, outcomes);
}

function isGivenUp({ status }: EndedMessage): boolean {
  return ["bounced", "failed", "expired"].includes(status);
}

function isReceived({ kind }: queries.TraceRow): boolean {
  return kind === "received";
}

/** Somebody may still look at what a test would have sent. */
function isKept({ status }: EndedMessage, ageMs: number): boolean {
  return status === "simulated" && ageMs < SIMULATED_KEPT_MS;
}

/** The older a message under way, the less often; what is kept, when its time is over. */
function nextLook(nowMs: number, { created_at }: queries.TraceRow, end: EndedMessage | undefined): Date {
  const ageMs = nowMs - created_at.getTime();
  return new Date(nowMs + (end ? SIMULATED_KEPT_MS - ageMs : Math.min(Math.max(ageMs, LOOK_MS_MIN), LOOK_MS_MAX)));
}

/** Why a bounce could not be taken, else null: it must not hold up the others, and is due again when its lease is over. */
function takeFault(world: carry.CarryWorld, ports: TracePorts, trace: queries.TraceRow, end: EndedMessage) {
  const fault = faultOf(end);
  if (!fault) return null;
  return takeBounce(world, ports, trace, fault).then(
    () => null,
    (error: unknown) => error,
  );
}

type Forgotten = { received: readonly queries.TraceRow[]; over: readonly queries.TraceRow[] };

async function forget(world: carry.CarryWorld, ports: TracePorts, { received, over }: Forgotten): Promise<void> {
  if (received.length > 0) {
    await ports.forgetReceived(received);
    await queries.endTraces(world.db, received);
  }
  if (over.length === 0) return;
  const withBlobs = await world.db.transaction(async (tx) => {
    await forgetRecipients(tx, over);
    await queries.endTraces(tx, over);
    return forgetMessages(tx, over);
  });
  for (const { org_id, id } of withBlobs) await ports.forgetBlobs(org_id, id);
}

function faultOf(end: EndedMessage): Fault | null {
  const { bounce_type, diag_code, bounce_class } = end;
  if (!isGivenUp(end)) return null;
  return { hard: bounce_type === "hard", code: diag_code, class: bounce_class };
}
