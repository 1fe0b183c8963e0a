// Mail to the return path of what left through a masked address: a report counts as the bounce it is, what answers by
// itself goes no further. One exception: an automatic answer to a reply is a contact's mail to the alias.
import type { ReturnedMail } from "../../mail/returned-mail.ts";
import { isFromContact } from "../arrive/answers.ts";
import { routeTo } from "../arrive/arrival.ts";
import { type Examined, readParts } from "../arrive/parts.ts";
import * as carry from "../carry/carry.ts";
import { findAlias } from "../queries.ts";
import { type Fault, takeBounce } from "./bounces.ts";
import type { BouncePorts } from "./ports.ts";
import { findTrace, type TraceRow } from "./trace-queries.ts";

/**
 * A handler of return-path mail; null when the message it names did not leave through a masked address. `forward` is the
 * handler of mail to aliases.
 */
export function maskedReturnPath<M extends carry.ArrivedMail, O>(
  world: carry.CarryWorld,
  ports: BouncePorts,
  forward: (mail: M) => Promise<O>,
) {
  return async (mail: M, messageId: string) => {
    const [trace] = await findTrace(world.db, mail.org_id, messageId);
    if (!trace || trace.kind === "received") return null;
    const examined = await mail.examination.returned();
    const fault = faultOf(examined);
    if (fault) await takeBounce(world, ports, trace, fault);
    const [alias] = trace.alias_id === null ? [] : await findAlias(world.db, trace.org_id, trace.alias_id);
    if (!alias || alias.deleted_at !== null) return carry.gone(world, mail);
    if (examined.kind === "failed") {
      return carry.conclude(
        world,
        { alias, mail },
        { status: "failed", reason: examined.reason, entries: [], counts: {} },
      );
    }
    const read = examined.returned;
    if (read.kind === "auto_reply" && trace.kind === "reply") {
      // In session it was the same, or the message went to others as well.
      if (!(await isFromContact(world, trace, await readParts(mail.examination)))) {
        return carry.conclude(world, { alias, mail }, { ...FOREIGN, entries: [foreign(mail)] });
      }
      return forward({ ...mail, route: routeTo(alias, null, null) });
    }
    const entries = [...(read.kind === "auto_reply" ? [answered(trace, mail)] : []), ...complained(trace, mail, read)];
    return carry.conclude(world, { alias, mail }, { status: "dropped", reason: read.kind, entries, counts: {} });
  };
}

const FOREIGN = { status: "dropped", reason: "foreign_answer", counts: { received: 1, blocked: 1 } } as const;

function foreign({ size }: carry.ArrivedMail) {
  return { size, type: "block" as const, outcome: "dropped" as const, reason: "foreign_answer" };
}

/** The mailbox answers by itself (RFC 3834): its contact is not to hear of it. */
function answered({ destination_id, contact_id }: TraceRow, { size }: carry.ArrivedMail) {
  const about = { destination_id, contact_id, size, reason: "auto_reply" };
  return { ...about, type: "auto_reply" as const, outcome: "dropped" as const };
}

/** The mailbox's owner called a forward spam (RFC 5965): the activity says so, nobody else hears of it. */
function complained({ destination_id, contact_id, kind }: TraceRow, { size }: carry.ArrivedMail, read: ReturnedMail) {
  if (read.kind !== "complaint" || kind !== "forward") return [];
  const about = { destination_id, contact_id, size, reason: "complaint" };
  return [{ ...about, type: "bounce" as const, outcome: "failed" as const }];
}

/** The final failure that a report tells of; null for a delay or a delivery. Each message has one recipient. */
function faultOf(examined: Awaited<ReturnType<Examined["returned"]>>): Fault | null {
  if (examined.kind === "failed" || examined.returned.kind !== "bounce") return null;
  const { recipients } = examined.returned.bounce;
  const failed = recipients.find(({ action, permanent }) => action === "failed" && permanent);
  if (!failed) return null;
  return { hard: failed.bounce_type === "hard", code: failed.status, class: failed.class };
}
