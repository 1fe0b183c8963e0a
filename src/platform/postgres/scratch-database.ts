// A PostgreSQL of its own in the folder for temporary files, for what must leave the real one alone: it is removed again, and a
// power cut may take it.
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEmbeddedPostgres } from "./embedded-postgres.ts";
import { makeCluster } from "./embedded-postgres-maker.ts";
import { giveTo, type User } from "./own-user.ts";

const SETTINGS = { fsync: "off", synchronous_commit: "off", full_page_writes: "off" };
/** Run by root, PostgreSQL runs as an ordinary user. */
const PASSABLE = 0o711;

export type ScratchDatabase = {
  /** As root, which is about to become `user`: makes what a number without a line in /etc/passwd cannot make. */
  prepareFor(user: User): Promise<void>;
  /** Makes the database, runs `work` with its URL, and removes the database. May be called once. */
  use<T>(work: (url: string) => Promise<T>): Promise<T>;
  /** Removes what `prepareFor` made, if it was not used. */
  remove(): Promise<void>;
};

/** Nothing is made yet. `name` is what its folder's name begins with. */
export function scratchDatabase(name: string): ScratchDatabase {
  let made: string | null = null;

  async function make(): Promise<string> {
    made = await mkdtemp(join(tmpdir(), `${name}-`));
    await chmod(made, PASSABLE);
    return made;
  }

  async function remove(): Promise<void> {
    if (made !== null) await rm(made, { recursive: true, force: true });
  }

  return {
    remove,
    async prepareFor(user) {
      const folder = await make();
      await makeCluster(join(folder, "postgres"), user);
      await giveTo(folder, user);
    },
    async use(work) {
      const folder = made ?? (await make());
      try {
        const server = await startEmbeddedPostgres({ data_dir: join(folder, "postgres"), settings: SETTINGS });
        try {
          return await work(server.url);
        } finally {
          await server.stop();
        }
      } finally {
        await remove();
      }
    },
  };
}
