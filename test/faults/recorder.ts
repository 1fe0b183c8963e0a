// What was acknowledged, kept outside the processes that are killed: every 202 is in a file, fsync'd, before the client
// that got it goes on. Many answers of the same moment share an fsync.
import { closeSync, fdatasync, openSync, writeSync } from "node:fs";

export type Acknowledged = { key: string; id: string; message_id: string };

export type Recorder = {
  /** Resolves when the answer is on disk. */
  keep(one: Acknowledged): Promise<void>;
  /** Since the last `forget`. */
  all(): Acknowledged[];
  /** Ever. */
  total(): number;
  /** A request was answered 500, which nothing that is done to a server excuses. */
  noteBroken(key: string): void;
  /** How many were, since the last `forget`. */
  broken(): number;
  /** A round was judged; the file keeps everything. */
  forget(): void;
  close(): void;
};

/** Begins an empty file. */
export function startRecorder(path: string): Recorder {
  const fd = openSync(path, "w");
  const kept: Acknowledged[] = [];
  let total = 0;
  let broken = 0;
  let waiting: Array<() => void> = [];
  let syncing = false;

  function sync(): void {
    syncing = true;
    const served = waiting;
    waiting = [];
    fdatasync(fd, (error) => {
      // A recorder that cannot keep its promise proves nothing.
      if (error) throw error;
      for (const done of served) done();
      syncing = false;
      if (waiting.length > 0) sync();
    });
  }

  return {
    keep(one) {
      writeSync(fd, `${JSON.stringify(one)}\n`);
      kept.push(one);
      total += 1;
      return new Promise((done) => {
        waiting.push(done);
        if (!syncing) sync();
      });
    },
    noteBroken(key) {
      writeSync(fd, `${JSON.stringify({ key, answered: 500 })}\n`);
      broken += 1;
    },
    broken: () => broken,
    all: () => kept,
    total: () => total,
    forget: () => {
      kept.length = 0;
      broken = 0;
    },
    close: () => closeSync(fd),
  };
}
