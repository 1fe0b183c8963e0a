// The first mail to the operator: from the service's own domain, through the queue and the engine as all mail, signed with
// DKIM. It shows whether mail leaves and what the operator's own mail server says of it.
import { organizationNamed } from "../accounts/accounts.ts";
import { startRoles } from "../app.ts";
import { timeline } from "../events/events.ts";
import { buildMessage } from "../mail/mime/write/build-message.ts";
import { ensureMaskedKey, MASKED_DOMAIN_ID } from "../masked/addresses/service-domain.ts";
import { laneFinder, notifier } from "../outbound/outbound.ts";
import { sleep } from "../platform/clock.ts";
import { withPartitions } from "../platform/database/partitions.ts";
import type { World } from "../platform/world.ts";
import { findServiceMail } from "../sending/raw-queries.ts";
import { enqueueRaw, withLane } from "../sending/sending.ts";

export type Verdict = {
  status: "delivered" | "bounced" | "deferred" | "queued";
  /** What the recipient's server answered last, or why it was not reached. */
  reply: string | null;
};

const LOOK_EVERY_MS = 500;
const WITHIN_MS = 90_000;

const OUTCOMES = new Map<string, Verdict["status"]>([
  ["delivered", "delivered"],
  ["ambiguous", "delivered"],
  ["deferred", "deferred"],
  ...["bounced", "failed", "expired"].map((type): [string, Verdict["status"]] => [type, "bounced"]),
]);

/** What became of the last first mail to this address; null when there was none. */
export async function earlierMail(world: Pick<World, "db">, email: string): Promise<Verdict | null> {
  const last = await findServiceMail(world.db, email);
  return last ? await verdictOf(world, last) : null;
}

/** Queues it and waits for an outcome. `isRunning`: another process sends it; else this one does, until then. */
export async function sendFirstMail(world: World, email: string, isRunning: boolean): Promise<Verdict> {
  const engine = isRunning ? null : await startRoles(world, ["mta"]);
  try {
    const queued = await queue(world, email);
    for (let waitedMs = 0; waitedMs < WITHIN_MS; waitedMs += LOOK_EVERY_MS) {
      const verdict = await verdictOf(world, queued);
      if (verdict.status !== "queued") return verdict;
      await sleep(LOOK_EVERY_MS);
    }
    return { status: "queued", reply: null };
  } finally {
    await engine?.stop();
  }
}

async function queue(world: World, email: string): Promise<{ org_id: string; id: string }> {
  await ensureMaskedKey(world);
  const message = compose(world, await organizationNamed(world, null), email);
  const ready = await withLane(laneFinder(world), message);
  await withPartitions(world, () => world.db.asOrg(message.org_id, (tx) => enqueueRaw(tx, [ready])));
  notifier(world)();
  return message;
}

function compose(world: World, org_id: string, email: string) {
  const { masked_domain, hostname, bounce_host } = world.config;
  const id = world.random.uuid();
  const nowMs = world.clock.now();
  const from = { name: "Postern", email: `no-reply@${masked_domain}` };
  const subject = `Mail leaves ${hostname}`;
  const { bytes } = buildMessage({
    from,
    to: [{ name: null, email }],
    cc: [],
    reply_to: [],
    subject,
    date: nowMs,
    message_id: `${id}@${masked_domain}`,
    headers: [{ name: "Auto-Submitted", value: "auto-generated" }],
    html: null,
    text: text(hostname),
    attachments: [],
    boundary_seed: world.random.token(24),
  });
  return {
    ...{ org_id, id, domain_id: MASKED_DOMAIN_ID, environment: "live" as const, origin: "system" as const },
    ...{ message_id: `${id}@${masked_domain}`, from_address: from.email, from_header: from.email, subject },
    ...{ metadata: {}, recipient: email, envelope_from: null, return_path_host: bounce_host },
    ...{ mime: bytes, blob_key: null, created_at: new Date(nowMs) },
  };
}

function text(hostname: string): string {
  return [
    `This is the first mail of the Postern at ${hostname}. It was signed with DKIM and left through port 25.`,
    "",
    "If it is in your inbox, mail of this installation arrives. If it is among spam, `postern doctor` says what is missing.",
    "",
  ].join("\n");
}

/** What the timeline says of the delivery last. */
async function verdictOf({ db }: Pick<World, "db">, { org_id, id }: { org_id: string; id: string }): Promise<Verdict> {
  const events = await db.asOrg(org_id, (tx) => timeline(tx, org_id, id));
  const last = events.findLast(({ event_type }) => OUTCOMES.has(event_type));
  if (!last) return { status: "queued", reply: null };
  const { message, mx_host } = last;
  const reply = message === null ? null : `${mx_host ? `${mx_host}: ` : ""}${message}`;
  return { status: OUTCOMES.get(last.event_type) as Verdict["status"], reply };
}
