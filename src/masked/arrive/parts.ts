// What receiving found out about a message, and its parts for those who need no more than who wrote to whom: mail is never
// lost because the parser is busy, or because the message is too much for it.
import type { ParsedMail } from "../../mail/mime/parsed-mail.ts";
import { readHead } from "../../mail/mime/read-head.ts";
import type { ReturnedMail } from "../../mail/returned-mail.ts";
import type { Policed } from "./policy.ts";

/** The shape of receiving's Examination. */
export type Examined = {
  bytes(): Promise<Buffer>;
  verdicts(): Promise<Policed>;
  parsed(): Promise<{ kind: "parsed"; mail: ParsedMail } | { kind: "failed"; reason: string }>;
  returned(): Promise<{ kind: "parsed"; returned: ReturnedMail } | { kind: "failed"; reason: string }>;
};

/** The message as it was parsed; what its head tells where that failed. */
export async function readParts({ bytes, parsed }: Examined): Promise<ParsedMail> {
  const read = await parsed();
  return read.kind === "parsed" ? read.mail : readHead(await bytes(), read.reason);
}
