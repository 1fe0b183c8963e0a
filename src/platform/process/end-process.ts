// The one way in which this process gives itself up: for a fault after which nobody knows what is stored (reliability rule 1).
import type { Log } from "./log.ts";

/** Says why and ends the process, whoever catches the failure of what was asked: the next start begins with what is durable. */
export function processEnder(log: Pick<Log, "fatal">): (failure: Error) => void {
  return (failure) => {
    log.fatal({ err: failure }, "nobody knows what is stored: the process ends");
    // Out of every promise that could swallow it; the line above is written first.
    setImmediate(() => {
      throw failure;
    });
  };
}
