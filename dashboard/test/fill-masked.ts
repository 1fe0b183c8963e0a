// Masked addresses for the stage: one that is used, with a forward, a contact that is blocked and a reply that is held.
import type { Scene } from "../../test/support/scene.ts";
import { receiveAt } from "../../test/support/stories.ts";
import { until } from "../../test/support/until.ts";

export type MaskedRecords = { alias: string; email: string; reply_address: string };

const MAILBOX = "ines.brandt@home.example";
const SHOP = { email: "orders@shop.example", ip: "192.0.2.10" };
const HOME_IP = "192.0.2.20";

export async function fillMasked(scene: Scene): Promise<MaskedRecords> {
  const ask = async (method: string, path: string, body: unknown): Promise<Record<string, unknown>> => {
    const answer = await scene.ask(method, path, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`);
    return answer.body as Record<string, unknown>;
  };
  scene.dns.set("shop.example", "TXT", [`v=spf1 ip4:${SHOP.ip} -all`]);
  scene.dns.set("home.example", "TXT", [`v=spf1 ip4:${HOME_IP} -all`]);
  receiveAt(scene.dns, "home.example", "mx.recipient.example");
  const make = async (fields: object) =>
    (await ask("POST", "/v1/masked/aliases", fields)).alias as { id: string; email: string };
  await make({ forward_to: ["team@nordkiosk.example"], format: "words", description: "Newsletters" });
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
  return { alias: id, email, reply_address };
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
