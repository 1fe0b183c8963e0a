// A message that was refused for the address it came from gets one more try, from another address of its pool. Which ones
// these are is remembered in memory: after a crash such a message may be refused once more, nothing else.
import type { KnownSource, Sources } from "./sources.ts";
import type { Job } from "./types.ts";

export type OtherSource = {
  /** Notes a refusal; true when there is another address and it was not tried yet. */
  note(job: Job, refused: { id: string }): boolean;
  /** The address to use instead of `usual`, or that. */
  instead(job: Job, usual: KnownSource): KnownSource;
};

const REMEMBERED_MAX = 10_000;

/** Nothing refused yet. */
export function rememberRefused(sources: Pick<Sources, "sibling">): OtherSource {
  const refused = new Map<string, string>();
  const keyOf = ({ message_id, position }: Job) => `${message_id}/${position}`;
  return {
    note(job, { id }) {
      const key = keyOf(job);
      if (refused.delete(key) || sources.sibling(id) === null) return false;
      if (refused.size >= REMEMBERED_MAX) refused.clear();
      refused.set(key, id);
      return true;
    },
    instead(job, usual) {
      const avoided = refused.get(keyOf(job));
      return avoided === usual.id ? (sources.sibling(usual.id) ?? usual) : usual;
    },
  };
}
