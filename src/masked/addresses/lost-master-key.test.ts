// After `postern accept-master-key`: what the lost key sealed can be listed and deleted, and hides nothing of the new.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { createSeal } from "../../platform/storage/seal.ts";
import { sealContact, sealText } from "./addresses.ts";

let api: TestApi;
before(async () => {
  api = await testApi();
});
after(() => api.close());

const get = async (path: string) => {
  const answer = await api.ask("GET", path);
  assert.equal(answer.status, 200, `${path} ${JSON.stringify(answer.body)}`);
  return answer.body;
};
const post = async (path: string, body: object) => (await api.ask("POST", path, body)).body;

/** As a key that is lost would have left them. */
async function loseKey(destinationId: string, contactId: string): Promise<void> {
  const lost = { seal: createSeal(randomBytes(32)) };
  const secrets = { email: "carol@shop.example", name: "Carol", reply_local: "r.x" };
  const set = (table: string, id: string, sealed: Buffer) =>
    api.world.db.execute(`update ${table} set sealed = $3 where org_id = $1 and id = $2`, [api.org_id, id, sealed]);
  await set("masked_destination", destinationId, sealText(lost, api.org_id, "old@real.example"));
  await set("masked_contact", contactId, sealContact(lost, api.org_id, secrets));
}

test("what a lost master key sealed is shown without its address, can be changed and deleted, and hides nothing", async () => {
  const { alias: old } = await post("/v1/masked/aliases", { forward_to: ["old@real.example"] });
  const at = `/v1/masked/aliases/${old.id}`;
  const { contact } = await post(`${at}/contacts`, { email: "carol@shop.example", name: "Carol" });
  const mailbox = (await get("/v1/masked/destinations")).destinations[0];
  await api.world.db.execute(
    `insert into masked_activity (org_id, id, alias_id, type, outcome, contact_id, destination_id, at)
     values ($1, $2, $3, 'forward', 'sent', $4, $5, $6)`,
    [api.org_id, api.world.random.uuid(), old.id, contact.id, mailbox.id, new Date(api.world.clock.now())],
  );
  await loseKey(mailbox.id, contact.id);
  const { alias: fresh } = await post("/v1/masked/aliases", { forward_to: ["new@real.example"] });

  const shown = (await get("/v1/masked/aliases")).aliases.map((one: typeof old) => [one.id, one.forward_to]);
  assert.deepEqual(shown, [
    [fresh.id, ["new@real.example"]],
    [old.id, []],
  ]);
  const emails = (await get("/v1/masked/destinations")).destinations.map(({ email }: { email: string }) => email);
  assert.deepEqual(emails, ["new@real.example", ""]);
  const people = (await get(`${at}/contacts`)).contacts;
  assert.deepEqual([people[0].email, people[0].name, people[0].reply_address], ["", null, ""]);
  const entry = (await get(`${at}/activity`)).activity.find(({ type }: { type: string }) => type === "forward");
  assert.deepEqual([entry.contact, entry.destination], [null, null]);

  const resent = await api.ask("POST", `/v1/masked/destinations/${mailbox.id}/resend`);
  assert.deepEqual([resent.status, resent.body.code], [409, "invalid_state"]);
  const blocked = await api.ask("PATCH", `${at}/contacts/${contact.id}`, { blocked: true });
  assert.deepEqual([blocked.status, blocked.body.contact?.blocked], [200, true], JSON.stringify(blocked.body));
  assert.equal((await api.ask("PATCH", `${at}/contacts/${contact.id}`, { name: "C" })).status, 409);
  assert.equal((await api.ask("PUT", at, { active: false })).body.alias?.active, false);
  const moved = await api.ask("PUT", at, { forward_to: ["new@real.example"] });
  assert.deepEqual(moved.body.alias?.forward_to, ["new@real.example"]);
  for (const path of [`${at}/contacts/${contact.id}`, `/v1/masked/destinations/${mailbox.id}`, at]) {
    assert.equal((await api.ask("DELETE", path)).status, 200, path);
  }
});
