// A reply with every file of it opened before the leak gate searches: archives and PDFs have readers that wait.
import { findLeaks } from "./gate/leak-gate.ts";
import { openFiles } from "./gate/open-files.ts";
import { type BuiltReply, buildReply, type ReplyOrder, STEPS } from "./reply.ts";

/** What buildReply does; a file that could not be opened is a leak, unless the order lets it leave. */
export async function buildOpenedReply(bytes: Buffer, order: ReplyOrder): Promise<BuiltReply> {
  // Files leave as they came: what is opened of the mail is what the finished reply holds.
  const opened = await openFiles(bytes);
  return buildReply(bytes, order, { ...STEPS, gate: (message, secrets) => findLeaks(message, secrets, opened) });
}
