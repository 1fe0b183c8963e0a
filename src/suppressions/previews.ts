// Previews of this process: small lists are read while their sender waits, large ones after the answer. Which they are is known
// before they are read, by their lines; a list without lines is found out on the way.
import { createFairGate, createFairPlaces } from "../platform/fair/fair-gate.ts";
import { Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import { LARGE_ROWS, previewImport, type Upload } from "./imports.ts";
import type { Job } from "./types.ts";
import type { ReadUpload } from "./upload.ts";

/** Lists that this process reads at once, once they are here: each takes a core, and up to 50 MB of the memory. */
const READING_MAX = 3;
/** Large lists that lie here, each up to 40 MiB of the disk: those being read and those that wait for it. */
const KEPT_MAX = 12;
const LF = 0x0a;

export type Previews = {
  /** The job: `previewed`, or `reading` where the list is large. Discards the upload in the end. */
  preview(orgId: string, upload: ReadUpload): Promise<Job>;
  /** Ends what is being read; its jobs fail. */
  stop(): Promise<void>;
};

/** Nothing is read yet. */
export function createPreviews(world: Pick<World, "db" | "clock" | "random" | "log">): Previews {
  const gate = createFairGate(READING_MAX);
  const kept = createFairPlaces({ places: KEPT_MAX, waiting_max: 0 });
  const stopping = new AbortController();
  const running = new Set<Promise<unknown>>();

  async function whole(orgId: string, upload: ReadUpload, onShown: (job: Job) => void): Promise<Job> {
    let leave: (() => void) | null = null;
    try {
      const is_large = await isLarge(upload);
      leave = is_large ? kept.enterNow(orgId) : null;
      if (is_large && leave === null) {
        throw new Refusal("unavailable", "too many of your lists are being read; try again shortly", {
          retry_after_seconds: 5,
        });
      }
      const turn = <T>(work: () => Promise<T>) => gate(orgId, work);
      return await previewImport(world, orgId, upload, { is_large, turn, onShown, signal: stopping.signal });
    } finally {
      leave?.();
      await upload.discard();
    }
  }

  return {
    async preview(orgId, upload) {
      const shown = Promise.withResolvers<Job>();
      const work = whole(orgId, upload, shown.resolve);
      const ended = work.catch((err) => world.log.debug({ err }, "a preview ended"));
      running.add(ended);
      ended.finally(() => running.delete(ended));
      return Promise.race([work, shown.promise]);
    },
    async stop() {
      stopping.abort();
      await Promise.all(running);
    },
  };
}

/** More lines than the rows of a small list and its heading; looks no further than it needs to. */
async function isLarge({ content }: Upload): Promise<boolean> {
  let lines = 0;
  for await (const piece of content) {
    for (let at = piece.indexOf(LF); at !== -1; at = piece.indexOf(LF, at + 1)) lines += 1;
    if (lines > LARGE_ROWS + 1) return true;
  }
  return false;
}
