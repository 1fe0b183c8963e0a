// A message that was refused for the address it came from gets one more try, from another address of its pool. Which ones
// these are is remembered in memory: after a crash such a message may be refused once more, nothing else.

import { createLru } from "../../platform/fair/lru.ts";
import type { KnownSource, Sources } from "../pools/sources.ts";
import { giveBackAttempts } from "../queue/ration.ts";
import type { Counted, Job } from "../types.ts";

export type OtherSource = {
  /** Notes a refusal; true when there is another address and it was not tried yet. */
  note(job: Job, refused: { id: string }): boolean;
  /** True if the job was refused because of this address, and is to leave from another. */
  avoids(job: Job, usual: { id: string }): boolean;
  /**
   * The address to use instead of `usual`, with an attempt of today set aside for it where these are counted, and that of `usual`
   * given back. `usual` when no other can send any more; null when others can, and none has an attempt left now.
   */
  instead(job: Job, usual: KnownSource): Promise<{ source: KnownSource; counted: Counted | undefined } | null>;
};

const REMEMBERED_MAX = 10_000;

/** Nothing refused yet. */
export function rememberRefused(
  sources: Pick<Sources, "hasOther" | "sibling" | "today" | "grant" | "giveBack">,
): OtherSource {
  const refused = createLru<string>(REMEMBERED_MAX);

  async function setAside(usual: KnownSource) {
    const asked = new Set<string>();
    for (let other = sources.sibling(usual.id); other && !asked.has(other.id); other = sources.sibling(usual.id)) {
      asked.add(other.id);
      const counted = { source_id: other.id, day: sources.today() };
      if ((await sources.grant(other, 1)) > 0) return { source: other, counted };
    }
    return null;
  }

  const keyOf = ({ message_id, position }: Job) => `${message_id}/${position}`;
  return {
    note(job, { id }) {
      const key = keyOf(job);
      if (refused.delete(key) || !sources.hasOther(id)) return false;
      refused.set(key, id);
      return true;
    },
    avoids: (job, { id }) => refused.get(keyOf(job)) === id,
    async instead(job, usual) {
      if (!sources.hasOther(usual.id)) return { source: usual, counted: job.counted };
      const other = await setAside(usual);
      await giveBackAttempts(sources, [job]);
      return other;
    },
  };
}
