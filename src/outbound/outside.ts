// What the engine touches of the machine beside the World: who this process is among others, the sockets to mail servers,
// the files of the journals. In one place, so that a simulation can put its own there (test/simulation).
import { LRUCache } from "lru-cache";
import { type ConnectFailure, openSession, type Session, type SessionOptions } from "../mail/smtp/session.ts";
import type { World } from "../platform/world.ts";
import { folderJournals, type Journals, journalFolders } from "./queue/journal.ts";
import { type ThisHost, thisHost } from "./queue/this-host.ts";

/** What the engine uses of an open session. */
export type MailSession = Pick<Session, "kind" | "tls" | "sent" | "usable" | "send" | "quit" | "close"> & {
  capabilities: Pick<Session["capabilities"], "eightbitmime">;
};

/** Servers that offer CHUNKING and do not know BDAT: it takes a broken one, so there are few. */
const REFUSING_MAX = 1_000;

export type OpenSession = (options: SessionOptions) => Promise<MailSession | ConnectFailure>;

export type Outside = { host: ThisHost; open: OpenSession; journals: Journals };

/** This machine, this process, real sockets and files. */
export function realOutside(world: Pick<World, "config">): Outside {
  return { host: thisHost(), open: rememberingRefusals(), journals: folderJournals(journalFolders(world)) };
}

/** Sessions with a server that once refused BDAT go without it, for as long as the process runs. */
function rememberingRefusals(): OpenSession {
  const refusing = new LRUCache<string, true>({ max: REFUSING_MAX });
  return (options) => {
    const on_chunking_refused = (): void => void refusing.set(options.address, true);
    return openSession({ ...options, chunking: !refusing.has(options.address), on_chunking_refused });
  };
}
