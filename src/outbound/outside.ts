// What the engine touches of the machine beside the World: who this process is among others, the sockets to mail servers,
// the files of the journals. In one place, so that a simulation can put its own there (test/simulation).
import { type ConnectFailure, openSession, type Session, type SessionOptions } from "../mail/smtp/session.ts";
import { type ThisHost, thisHost } from "../platform/process/this-host.ts";
import type { World } from "../platform/world.ts";
import { folderJournals, type Journals, journalFolders } from "./queue/journal.ts";

/** What the engine uses of an open session. */
export type MailSession = Pick<Session, "kind" | "tls" | "sent" | "usable" | "send" | "quit" | "close"> & {
  capabilities: Pick<Session["capabilities"], "eightbitmime">;
};

export type OpenSession = (options: SessionOptions) => Promise<MailSession | ConnectFailure>;

export type Outside = { host: ThisHost; open: OpenSession; journals: Journals };

/** This machine, this process, real sockets and files. */
export function realOutside(world: Pick<World, "config">): Outside {
  return { host: thisHost(), open: openSession, journals: folderJournals(journalFolders(world)) };
}
