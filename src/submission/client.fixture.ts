// A client of submission that sends what the test says, for the tests of logins and messages.
import assert from "node:assert/strict";
import { type RawSmtp, rawSmtp } from "../../test/support/raw-smtp.ts";

const open = new Set<RawSmtp>();

export const b64 = (text: string) => Buffer.from(text).toString("base64");

export const loginCommand = (password: string, user = "postern") => `AUTH PLAIN ${b64(`\0${user}\0${password}`)}`;

/** A connection of which nothing is read yet. */
export async function connected(port: number): Promise<RawSmtp> {
  const smtp = await rawSmtp(port);
  open.add(smtp);
  return smtp;
}

/** A connection under TLS, not logged in yet. */
export async function securedClient(port: number): Promise<RawSmtp> {
  const smtp = await connected(port);
  assert.equal((await smtp.reply()).code, 220);
  await smtp.ask("EHLO client.example");
  assert.equal((await smtp.ask("STARTTLS")).code, 220);
  await smtp.startTls();
  await smtp.ask("EHLO client.example");
  return smtp;
}

/** Cuts every connection made here. */
export function hangUp(): void {
  for (const smtp of open) smtp.destroy();
  open.clear();
}
