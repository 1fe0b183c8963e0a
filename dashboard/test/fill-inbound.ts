// Received mail for the stage: a domain that receives, its alias and rule, and simulated mails of every fate.
import type { Scene } from "../../test/support/scene.ts";
import { SPAMMY } from "../../test/support/spam-texts.ts";

export type InboundRecords = { domain: string; rule: string; mail: string; quarantined: string; reply: string };

const HTML =
  "<h1>Hello</h1><p>My parcel <b>1042</b> has not come. Where is it?</p><img src=https://track.example/p.gif alt=''>";

export async function fillInbound(scene: Scene): Promise<InboundRecords> {
  const ask = async (method: string, path: string, body: unknown): Promise<Record<string, unknown>> => {
    const answer = await scene.ask(method, path, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`);
    return answer.body as Record<string, unknown>;
  };
  const made = await ask("POST", "/v1/domains", {
    ...{ domain: "help.nordkiosk.example", type: "inbound", inbound_mx_acknowledged: true },
  });
  const domain = String(made.id);
  const hook = (await ask("POST", "/v1/webhooks", {
    url: `${scene.receiver.url}/inbound`,
    events: ["email.received"],
  })) as { webhook: { id: string } };
  await ask("POST", "/v1/aliases", {
    ...{ domain_id: domain, local_part: "support", description: "The shop's questions" },
    webhook_ids: [hook.webhook.id],
  });
  const rule = (await ask("POST", "/v1/inbound-rules", {
    ...{ domain_id: domain, name: "Invoices are only kept", action: "store" },
    match: { any: [{ field: "subject", comparator: "contains", value: "invoice" }] },
  })) as { rule: { id: string } };
  await ask("PUT", `/v1/domains/${domain}/spam`, {
    thresholds: { tag: 2, quarantine: 4, reject: 100 },
    block: ["spammer.example"],
  });
  const simulate = async (fields: Record<string, unknown>): Promise<{ id: string; message_id: string }> => {
    const { email } = (await ask("POST", "/v1/inbound-emails/simulate", {
      ...{ to: "support@help.nordkiosk.example", from: "Maja Lind <maja.lind@posteo.example>", ...fields },
    })) as { email: { id: string; message_id: string } };
    return email;
  };
  const mail = await simulate({
    ...{ subject: "Where is my parcel?", text: "My parcel 1042 has not come.", html: HTML },
    attachments: [{ filename: "receipt.pdf", content: Buffer.from("%PDF-1.4\n").toString("base64") }],
  });
  const reply = await simulate({
    ...{ subject: "Re: Where is my parcel?", text: "It has come now. Thank you!" },
    headers: { "In-Reply-To": mail.message_id, References: mail.message_id },
  });
  await simulate({ subject: "Your invoice 77", text: "Please pay.", from: "billing@supplier.example" });
  const quarantined = await simulate({
    ...{ subject: "V1AGRA 100% FREE!!!", from: "win@unknown.example", envelope_from: "win@unknown.example" },
    text: SPAMMY,
    headers: { "Reply-To": "other@elsewhere.example" },
  });
  return { domain, rule: rule.rule.id, mail: mail.id, quarantined: quarantined.id, reply: reply.id };
}
