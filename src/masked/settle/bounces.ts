// What bounces behind a masked address. A forward: it counts against the destination, three hard ones within a day suspend
// it, and the contact learns nothing; where the mailbox is there, its owner is informed. A reply: its author is informed, in our
// words. What failed is kept for a while (held/failed.ts). Each message's bounce counts once, whether the server refused it in
// session or sent a report later.
import type { Tx } from "../../platform/database/db.ts";
import { withPartitions } from "../../platform/database/partitions.ts";
import { enqueueRaw, type Laned, withLane } from "../../sending/sending.ts";
import { recordActivity } from "../activity.ts";
import { tryOpenContact, tryOpenText } from "../addresses/addresses.ts";
import { windowCounterIn } from "../arrive/windows.ts";
import type * as carry from "../carry/carry.ts";
import { shownName } from "../carry/shown-name.ts";
import { insertKept, keepFailed } from "../held/failed.ts";
import { findContacts, findDestination } from "../people-queries.ts";
import { findAlias } from "../queries.ts";
import { DESTINATION_BOUNCING } from "../types.ts";
import { makeNotice } from "./notices.ts";
import type { BouncePorts } from "./ports.ts";
import { tellUndelivered } from "./reports.ts";
import * as queries from "./trace-queries.ts";
import { insertTraces } from "./traces.ts";

/** `code` is RFC 3463's; `class` a word of the classifier. */
export type Fault = { hard: boolean; code: string | null; class: string | null };

const DAY_MS = 86_400_000;
const HARD_BOUNCES_MAX = 3;

/** Takes a final bounce of what we sent on; the second one of a message changes nothing. */
export async function takeBounce(
  world: carry.CarryWorld,
  ports: BouncePorts,
  trace: queries.TraceRow,
  fault: Fault,
): Promise<void> {
  const kept = await keepFailed(world, ports, trace, reasonOf(fault));
  const linked = kept && (await noticeOf(world, ports, trace, { fault, link: kept.link }));
  const plain = await noticeOf(world, ports, trace, { fault, link: null });
  const done = await withPartitions(world, () =>
    world.db.asOrg(trace.org_id, async (tx) => {
      const at = new Date(world.clock.now());
      const isNew = await queries.markBounced(tx, trace.org_id, trace.id, at);
      if (!isNew || trace.alias_id === null) return { isKept: false, notice: null };
      if (trace.kind === "forward") await noteOnDestination(tx, world, trace, { fault, at });
      if (trace.kind !== "notice") await note(tx, world, trace, reasonOf(fault));
      const isKept = kept !== null && (await insertKept(world, tx, kept.row));
      const notice = isKept && linked && (await mayTell(world, tx, trace)) ? linked : plain;
      if (!notice) return { isKept, notice };
      await enqueueRaw(tx, [notice]);
      await insertTraces(world, tx, [{ ...notice, kind: "notice", alias_id: trace.alias_id }]);
      return { isKept, notice };
    }),
  );
  if (done.notice) ports.notify();
  if (!done.isKept && kept?.row.blob_key) await ports.forgetBlobs(trace.org_id, kept.row.id);
}

/** The notices of forwards are counted for their mailbox; of a reply its author always learns. */
async function mayTell(world: carry.CarryWorld, tx: Tx, trace: queries.TraceRow): Promise<boolean> {
  const { org_id, kind, destination_id: id } = trace;
  if (kind !== "forward" || id === null) return true;
  return windowCounterIn(tx, world)({ org_id, id }, "failed_notice_day");
}

function reasonOf({ hard, code, class: word }: Fault): string {
  return [hard ? "hard" : "soft", code, word].filter((one) => one !== null).join(" ");
}

function note(tx: Tx, world: carry.CarryWorld, trace: queries.TraceRow, reason: string): Promise<void> {
  const { org_id, destination_id, contact_id } = trace;
  const alias_id = trace.alias_id as string;
  const entry = { org_id, alias_id, destination_id, contact_id, reason };
  return recordActivity(world, tx, { ...entry, type: "bounce", outcome: "failed" });
}

type Noted = { fault: Fault; at: Date };

async function noteOnDestination(
  tx: Tx,
  world: carry.CarryWorld,
  trace: queries.TraceRow,
  { fault, at }: Noted,
): Promise<void> {
  const { org_id, destination_id } = trace;
  if (!fault.hard || destination_id === null) return;
  const since = new Date(at.getTime() - DAY_MS);
  const bounce = { id: destination_id, at, since, bounces_max: HARD_BOUNCES_MAX };
  if (!(await queries.noteHardBounce(tx, org_id, bounce))) return;
  const aliases = await queries.findAliasesOf(tx, org_id, destination_id);
  const cut = aliases.filter(({ reachable }) => !reachable).map(({ id }) => id);
  await queries.disableAliases(tx, org_id, cut, { reason: DESTINATION_BOUNCING, at });
  for (const { id } of aliases) {
    const entry = { org_id, alias_id: id, destination_id, reason: "destination_suspended" };
    await recordActivity(world, tx, { ...entry, type: "config", outcome: "sent" });
  }
}

type Bounced = { fault: Fault; link: string | null };

/** The notice for the mailbox; null where nobody is there to read it. */
function noticeOf(world: carry.CarryWorld, ports: BouncePorts, trace: queries.TraceRow, about: Bounced) {
  if (trace.kind === "reply") return noticeOfReply(world, ports, trace, about);
  return trace.kind === "forward" && about.link !== null ? noticeOfForward(world, ports, trace, about) : null;
}

/** Null when nobody knows any more whom to inform of what. */
async function peopleOf(world: carry.CarryWorld, trace: queries.TraceRow, ownerId: string | null) {
  const { org_id, alias_id, contact_id } = trace;
  if (alias_id === null || ownerId === null || contact_id === null) return null;
  const [alias] = await findAlias(world.db, org_id, alias_id);
  const [owner] = await findDestination(world.db, org_id, ownerId);
  const [contact] = await findContacts(world.db, org_id, [contact_id]);
  if (!alias || !owner || !contact) return null;
  const secrets = tryOpenContact(world, org_id, contact.sealed);
  const to = tryOpenText(world, org_id, owner.sealed);
  return secrets === null || to === null ? null : { alias, to, ...secrets };
}

async function noticeOfReply(
  world: carry.CarryWorld,
  ports: BouncePorts,
  trace: queries.TraceRow,
  { fault, link }: Bounced,
): Promise<Laned | null> {
  const people = await peopleOf(world, trace, trace.owner_id);
  if (people === null) return null;
  const { alias, to, email, reply_local } = people;
  const raw = await makeNotice(world, ports, alias, {
    to,
    environment: alias.environment,
    about_id: null,
    reverse_address: `${reply_local}@${alias.domain}`,
    refusal: { kind: "bounced", contact: email, code: fault.code, reason: sentenceOf(fault, "contact's"), link },
  });
  return withLane(ports.findLane, raw);
}

/** A mailbox that is not there is not written to. */
async function noticeOfForward(
  world: carry.CarryWorld,
  ports: BouncePorts,
  trace: queries.TraceRow,
  { fault, link }: Bounced,
): Promise<Laned | null> {
  const isThere = fault.class !== "invalid_recipient" && !/^5\.(?:1\.|2\.1$)/.test(fault.code ?? "");
  const { destination_id } = trace;
  if (!isThere || link === null || destination_id === null) return null;
  const people = await peopleOf(world, trace, destination_id);
  if (people === null) return null;
  const { alias, to, email } = people;
  const order = { to, environment: alias.environment, about_id: null, link };
  const shown = shownName({ name: null, email });
  const raw = await tellUndelivered(world, ports, alias, { ...order, shown, reason: sentenceOf(fault, "mailbox's") });
  return withLane(ports.findLane, raw);
}

function sentenceOf({ code, class: word }: Fault, whose: "contact's" | "mailbox's"): string {
  if (code !== null && /^5\.1\.[0-36]$/.test(code)) return "there is no such mailbox";
  if (code !== null && /^[45]\.2\.2$/.test(code)) return "the mailbox is full";
  if (code !== null && /^5\.2\./.test(code)) return "the mailbox does not take mail";
  if (code !== null && /^[45]\.3\.4$/.test(code)) return `the message is too large for the ${whose} server`;
  if (code !== null && /^5\.7\./.test(code)) return `the ${whose} server refused it by its own rules`;
  if (word === "expired") return `the ${whose} server could not be reached for days`;
  return `the ${whose} server refused it`;
}
