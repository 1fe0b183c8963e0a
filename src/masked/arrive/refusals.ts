// What the activity says of mail that was not taken: refused for good (550) or deferred (450). Entries in bounds, so that
// nobody fills the activity by being refused; the counters count every mail that was refused for good.

import { withPartitions } from "../../platform/database/partitions.ts";
import { coalesce } from "../../platform/fair/coalesce.ts";
import type { World } from "../../platform/world.ts";
import { type Entry, toActivityRow } from "../activity.ts";
import { type ConcludedMail, concludeMails } from "../carry/conclude-queries.ts";
import type { MaskedRoute } from "../types.ts";
import { type Proof, verdictsOf } from "./sender-proof.ts";
import { windowCounter } from "./windows.ts";

type NoteWorld = Pick<World, "db" | "clock" | "random">;

/** `size` and `proof` are null before there is a message. */
export type Turned = { route: MaskedRoute; code: number; reason: string; size: number | null; proof: Proof | null };

export type NoteRefusal = (turned: Turned) => Promise<void>;

const AT_ONCE_MAX = 100;
const NOTHING = { received: 0, forwarded: 0, replied: 0, blocked: 0 };

/** A writer of such entries: what many mails want is written in one transaction. */
export function refusalNoter(world: NoteWorld): NoteRefusal {
  const isWithin = windowCounter(world);
  const write = coalesce<ConcludedMail, true>({
    keys_max: AT_ONCE_MAX,
    lanes: 1,
    load: async (facts) => {
      await withPartitions(world, () => world.db.transaction((tx) => concludeMails(tx, facts)));
      return new Map(facts.map((fact) => [fact, true]));
    },
  });
  return async (turned) => {
    const { org_id, detail } = turned.route;
    const isNoted = await isWithin({ org_id, id: detail.alias_id }, "refusal_hour");
    const counts = isCounted(turned) ? { ...NOTHING, received: 1, blocked: 1 } : NOTHING;
    if (!isNoted && !isCounted(turned)) return;
    const entries = isNoted ? [toActivityRow(world, entryOf(turned))] : [];
    const at = new Date(world.clock.now());
    await write({
      org_id,
      alias_id: detail.alias_id,
      at,
      traces: [],
      ids: [],
      sent: [],
      contact: null,
      entries,
      counts,
    });
  };
}

/** As mail that was taken and blocked counts; what is deferred comes again. */
function isCounted({ route, code }: Turned): boolean {
  return route.kind === "masked" && code >= 500;
}

function entryOf({ route, code, reason, size, proof }: Turned): Entry {
  const { org_id, detail } = route;
  const verdicts = proof ? verdictsOf(proof) : {};
  const about = { org_id, alias_id: detail.alias_id, contact_id: detail.contact_id, reason, size, ...verdicts };
  const isLater = code < 500;
  if (route.kind === "reverse") return { ...about, type: "reply", outcome: isLater ? "deferred" : "failed" };
  return isLater ? { ...about, type: "forward", outcome: "deferred" } : { ...about, type: "block", outcome: "failed" };
}
