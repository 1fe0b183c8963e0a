// What an operator sees of the connections to our SMTP servers: how many are open, and who was sent away at the door, and why.
// Not here: the limits themselves (mail/smtp-server/client-limits.ts), answers to messages.
import type { World } from "../world.ts";

export type ConnectionNotes = {
  entered(): void;
  left(): void;
  refused(why: "full" | "client_full" | "client_fast"): void;
};

/** For each server of that name in this process; servers of the same name are counted together. */
export function noteConnections({ metrics }: Pick<World, "metrics">, server: "mx" | "submission"): ConnectionNotes {
  const open = metrics.gauge("postern_smtp_connections", "Open SMTP connections from clients", ["server"]);
  const refused = metrics.counter("postern_smtp_refused_connections_total", "SMTP connections answered 421 at once", [
    "server",
    "why",
  ]);
  open.inc({ server }, 0);
  for (const why of ["full", "client_full", "client_fast"]) refused.inc({ server, why }, 0);
  return {
    entered: () => open.inc({ server }),
    left: () => open.dec({ server }),
    refused: (why) => refused.inc({ server, why }),
  };
}
