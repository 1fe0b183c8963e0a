// The journal of the node id that this process has now, and the last question before the final dot, which is noted in it. Not
// here: the file (journal.ts), and what is read from the journal of a process that died (dead-node.ts).
import type { World } from "../../platform/world.ts";
import type { Job, Mark, Outcome } from "../types.ts";
import type { InFlight, Journal, Journals } from "./journal.ts";
import type { Leases } from "./leases.ts";

export type OwnJournal = {
  /** This process has a new node id. */
  begin(node: number): void;
  /** Notes that the message may arrive from here on; false when it cannot be noted. */
  note(job: Job): boolean;
  /** Right after the server's answer: what a kill would leave in doubt from here on is known. */
  conclude(job: Job, outcome: Outcome): void;
  /** Their outcomes are committed. */
  settle(ended: readonly Pick<InFlight, "message_id" | "position">[]): void;
  close(): void;
};

/** The journal of this process, which is opened by `begin`. */
export function createOwnJournal(world: Pick<World, "log">, journals: Pick<Journals, "open">): OwnJournal {
  let open: Journal | null = null;
  return {
    begin(node) {
      open?.close();
      open = journals.open(node);
    },
    note(job) {
      try {
        open?.note(job);
        return open !== null;
      } catch (err) {
        world.log.error({ err }, "the journal of what is in flight cannot be written");
        return false;
      }
    },
    conclude(job, outcome) {
      try {
        open?.conclude(job, outcome);
      } catch (err) {
        world.log.warn({ err }, "the journal cannot keep an answer; a kill would leave the message in doubt");
      }
    },
    settle: (ended) => open?.settle(ended),
    close: () => open?.close(),
  };
}

type Fenced = { leases: Pick<Leases, "mayStart" | "node">; journal: Pick<OwnJournal, "note">; mark: Mark | undefined };

/** What another node owns by now is not ended, and what the journal cannot note is not either: it would be sent twice. */
export function mayEnd({ leases, journal, mark }: Fenced, job: Job): boolean {
  if (!leases.mayStart() || job.owner !== leases.node() || !journal.note(job)) return false;
  mark?.sending();
  return true;
}
