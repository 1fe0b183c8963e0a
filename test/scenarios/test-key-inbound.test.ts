// Over SMTP: nothing that a test key makes at a domain of live keys leads live mail away or turns it away.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startTestReceiving } from "../support/receiving.ts";

const receiving = await startTestReceiving();
const { api, domain } = receiving;
after(() => receiving.close());

const trial = { key: api.test_key };

async function make(path: string, body: object, options?: { key: string }) {
  const made = await api.ask("POST", path, body, options);
  assert.equal(made.status, 201, JSON.stringify(made.body));
  return made.body.alias;
}

test("live mail goes to the live pattern past aliases and masked addresses of test keys, there or deleted", async () => {
  const live = await make("/v1/aliases", { domain_id: domain.id, local_part: "desk*", action: "store" });
  await make("/v1/aliases", { domain_id: domain.id, local_part: "desk-alias", action: "drop" }, trial);
  await make("/v1/aliases", { domain_id: domain.id, local_part: "desk-of?", active: false }, trial);
  const masked = (local_part: string) =>
    make("/v1/masked/aliases", { domain_id: domain.id, local_part, forward_to: ["me@home.example"] }, trial);
  await masked("desk-masked");
  const { id } = await masked("desk-deleted");
  assert.equal((await api.ask("DELETE", `/v1/masked/aliases/${id}`, undefined, trial)).status, 200);
  const names = ["desk-alias", "desk-off", "desk-masked", "desk-deleted"];
  for (const name of names) {
    await receiving.send({ from: "a@sender.example", to: `${name}@${domain.domain}`, subject: name, text: "Hello" });
  }
  const mails = await receiving.processed("", names.length);
  assert.deepEqual(
    mails.map(({ subject, alias_id, status }) => [subject, alias_id, status]).sort(),
    names.map((name) => [name, live.id, "delivered"]).sort(),
  );
});

test("a masked address of a test key still takes mail of a trial", async () => {
  const alias = await make(
    "/v1/masked/aliases",
    { domain_id: domain.id, local_part: "tried", forward_to: ["me@home.example"] },
    trial,
  );
  const mail = { from: "a@sender.example", to: alias.email, subject: "Hello", text: "Hello" };
  const { body } = await api.ask("POST", "/v1/inbound-emails/simulate", mail, trial);
  assert.deepEqual([body.accepted, body.messages.length], [true, 1], JSON.stringify(body));
});
