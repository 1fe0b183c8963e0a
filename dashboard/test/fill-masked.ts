// Masked addresses for the stage: one that is used, with a forward, a contact that is blocked, a reply that is held and mail that
// failed; a mailbox with patterns and a key that ends soon.
import nodemailer from "nodemailer";
import { generateKey } from "openpgp";
import type { Scene } from "../../test/support/scene.ts";
import { receiveAt } from "../../test/support/stories.ts";
import { until } from "../../test/support/until.ts";
import { addVerifiedDomain } from "../../test/support/verified-domain.ts";

/** `quiet`: nothing came for it. `mailbox`: with patterns at `domain` and a key; `plain`: without. */
export type MaskedRecords = {
  alias: string;
  quiet: string;
  email: string;
  reply_address: string;
  mailbox: string;
  plain: string;
  domain: string;
};
/** The recipients' server refuses a message that holds it, when it comes for the first time. */
export const REFUSED_ONCE = "Here is the contract that was too long.";

const MAILBOX = "ines.brandt@home.example";
const OTHER_MAILBOX = "team@nordkiosk.example";
const SHOP = { email: "orders@shop.example", ip: "192.0.2.10" };
const HERE = "127.0.0.1";
const HOME_IP = "192.0.2.20";

export async function fillMasked(scene: Scene): Promise<MaskedRecords> {
  const ask = async (method: string, path: string, body: unknown): Promise<Record<string, unknown>> => {
    const answer = await scene.ask(method, path, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`);
    return answer.body as Record<string, unknown>;
  };
  scene.dns.set("shop.example", "TXT", [`v=spf1 ip4:${SHOP.ip} ip4:${HERE} -all`]);
  scene.dns.set("home.example", "TXT", [`v=spf1 ip4:${HOME_IP} ip4:${HERE} -all`]);
  receiveAt(scene.dns, "home.example", "mx.recipient.example");
  const make = async (fields: object) =>
    (await ask("POST", "/v1/masked/aliases", fields)).alias as { id: string; email: string };
  const quiet = await make({ forward_to: [OTHER_MAILBOX], format: "words", description: "Newsletters" });
  const { id, email } = await make({ forward_to: [MAILBOX], local_part: "ines.shop", description: "The shop" });
  const receive = (from: string, ip: string, to: string, text: string) =>
    ask("POST", "/v1/inbound-emails/simulate", {
      ...{ to, envelope_from: from, remote_ip: ip, helo: "mx.example" },
      raw_base64: Buffer.from(`From: ${from}\r\nTo: ${to}\r\nSubject: Order\r\n\r\n${text}\r\n`).toString("base64"),
    });
  await confirm(scene);
  await receive(SHOP.email, SHOP.ip, email, "Your order is on its way.");
  const contact = await ask("POST", `/v1/masked/aliases/${id}/contacts`, { email: SHOP.email, name: "The shop" });
  const { reply_address } = contact.contact as { reply_address: string };
  await receive(MAILBOX, HOME_IP, reply_address, "Thank you.");
  const pdf = Buffer.from(`%PDF-1.4 \x00 ${MAILBOX}`).toString("base64");
  const held =
    `From: ${MAILBOX}\r\nTo: ${reply_address}\r\nSubject: Offer\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n` +
    `--b\r\nContent-Type: text/plain\r\n\r\nSee the file.\r\n--b\r\nContent-Type: application/pdf; name="offer.pdf"\r\n` +
    `Content-Transfer-Encoding: base64\r\n\r\n${pdf}\r\n--b--\r\n`;
  await ask("POST", "/v1/inbound-emails/simulate", {
    ...{ to: reply_address, envelope_from: MAILBOX, remote_ip: HOME_IP, helo: "mx.example" },
    raw_base64: Buffer.from(held).toString("base64"),
  });
  const spam = await ask("POST", `/v1/masked/aliases/${id}/contacts`, { email: "win@unknown.example" });
  await ask("PATCH", `/v1/masked/aliases/${id}/contacts/${(spam.contact as { id: string }).id}`, { blocked: true });
  receiveAt(scene.dns, "shop.example", "mx.recipient.example");
  await sendIn(scene, { from: MAILBOX, to: reply_address, text: REFUSED_ONCE });
  await sendIn(scene, { from: SHOP.email, to: email, text: REFUSED_ONCE });
  await until("both failed", async () => {
    const { body } = await scene.ask("GET", "/v1/masked/failed");
    return (body.failed as unknown as unknown[]).length >= 2;
  });
  return { alias: id, quiet: quiet.id, email, reply_address, ...(await fillMailboxes(scene, ask)) };
}

/** Over SMTP: what is simulated does not leave. */
export async function sendIn({ mx_port: port }: Scene, { from, to, text }: Record<"from" | "to" | "text", string>) {
  const transport = nodemailer.createTransport({ host: HERE, port, tls: { rejectUnauthorized: false } });
  try {
    await transport.sendMail({ from, to, subject: "The contract", text });
  } finally {
    transport.close();
  }
}

const PATTERN_DOMAIN = "brandt.example";

/** For patterns. Before the domain that receives, which forms offer first. */
export async function addPatternDomain(scene: Scene): Promise<void> {
  await addVerifiedDomain(scene, scene.dns, PATTERN_DOMAIN, { type: "both" });
}

type Ask = (method: string, path: string, body: unknown) => Promise<Record<string, unknown>>;

async function fillMailboxes(scene: Scene, ask: Ask): Promise<Pick<MaskedRecords, "mailbox" | "plain" | "domain">> {
  const { body } = await scene.ask("GET", "/v1/masked/destinations");
  const found = body.destinations as unknown as { id: string; email: string }[];
  const idOf = (email: string) => found.find((one) => one.email === email)?.id ?? "";
  const mailbox = idOf(OTHER_MAILBOX);
  for (const pattern of [`*.ines@${PATTERN_DOMAIN}`, `shop-*@${PATTERN_DOMAIN}`])
    await ask("POST", `/v1/masked/destinations/${mailbox}/patterns`, { pattern });
  await ask("PUT", `/v1/masked/destinations/${mailbox}/pgp-key`, { public_key: await publicKeyOf(OTHER_MAILBOX) });
  return { mailbox, plain: idOf(MAILBOX), domain: PATTERN_DOMAIN };
}

/** It ends in twenty days. */
export async function publicKeyOf(email: string): Promise<string> {
  const userIDs = [{ email }];
  return (await generateKey({ type: "curve25519", userIDs, keyExpirationTime: 20 * 86_400 })).publicKey;
}

/** The owner of the mailbox opens the link that was mailed there, and presses the button. */
async function confirm({ sink, base_url }: Scene): Promise<void> {
  const link = await until("the mail that asks for consent", () => {
    const mails = sink.messages.map(({ bytes }) => bytes.toString("latin1").replaceAll(/=\r\n/g, ""));
    return mails.map((mail) => /\/masked\/confirm\/[\w.-]+/.exec(mail)?.[0]).find(Boolean);
  });
  const answer = await fetch(`${base_url}${link}`, { method: "POST" });
  if (!answer.ok) throw new Error(`not confirmed: ${answer.status} ${await answer.text()}`);
}
