// Whom we ask for consent, and how often: these mails go to people who do not know the sender.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";

let api: TestApi;

before(async () => {
  api = await testApi();
});
after(() => api.close());

/** The confirmation mails that were made for an address. */
const mailsTo = (email: string) =>
  api.world.db.query("select message_id from recipient where email = $1 order by message_id", [email]);

test("a mailbox gets three confirmation mails a day, whoever asks it how often, under whatever tag", async () => {
  const other = (await api.organization()).live_key;
  const add = async (email: string, key = api.live_key) => {
    const { status, body } = await api.ask("POST", "/v1/masked/destinations", { email }, { key });
    assert.equal(status, 201, JSON.stringify(body));
    return body.destination as { id: string; confirmation_sent_at: string | null };
  };
  const total = async () =>
    (await Promise.all(["", "+a", "+b"].map((tag) => mailsTo(`Flood${tag}@real.example`)))).flat();
  for (let n = 0; n < 2; n += 1) {
    const { id } = await add("Flood@real.example");
    assert.equal((await api.ask("DELETE", `/v1/masked/destinations/${id}`)).status, 200);
  }
  assert.notEqual((await add("Flood+a@real.example", other)).confirmation_sent_at, null);
  assert.equal((await add("Flood+b@real.example", other)).confirmation_sent_at, null);
  const { id, confirmation_sent_at } = await add("Flood@real.example");
  assert.equal(confirmation_sent_at, null, "it is there, and was not asked");
  assert.equal((await total()).length, 3);
  const again = await api.ask("POST", `/v1/masked/destinations/${id}/resend`);
  assert.deepEqual([again.status, again.body.limit_type, again.body.limit], [429, "daily", 3]);
  assert.ok(again.body.retry_after_seconds > 0 && again.body.retry_after_seconds <= 86_400);
  await api.world.db.execute("update masked_confirmation_day set day = day - 1");
  assert.equal((await api.ask("POST", `/v1/masked/destinations/${id}/resend`)).status, 200);
  assert.equal((await total()).length, 4);
});

test("an organization that may not send live asks nobody for consent, and says why", async () => {
  const { org_id, live_key: key } = await api.organization();
  const add = (email: string) => api.ask("POST", "/v1/masked/destinations", { email }, { key });
  const { body } = await add("before@real.example");
  for (const [state, code] of [
    ["pending_review", "organization_in_review"],
    ["suspended", "organization_suspended"],
  ]) {
    await api.world.db.execute("update organization set state = $2 where id = $1", [org_id, state]);
    await api.world.db.execute(
      "update masked_destination set confirmation_sent_at = confirmation_sent_at - interval '2 minutes' where org_id = $1",
      [org_id],
    );
    const refusals = [
      await add(`stranger.${state}@real.example`),
      await api.ask("POST", "/v1/masked/aliases", { forward_to: [`stranger.${state}@real.example`] }, { key }),
      await api.ask("POST", `/v1/masked/destinations/${body.destination.id}/resend`, undefined, { key }),
    ];
    for (const answer of refusals) assert.deepEqual([answer.status, answer.body.code], [403, code]);
    assert.deepEqual(await mailsTo(`stranger.${state}@real.example`), []);
    assert.equal((await mailsTo("before@real.example")).length, 1);
  }
});

test("an organization asks so many mailboxes a day as its plan has, then 429 tells when to go on", async () => {
  const { org_id, live_key: key } = await api.organization();
  await api.world.db.execute("update organization set plan = 'free', requests_per_second = 1000 where id = $1", [
    org_id,
  ]);
  const add = (n: number) => api.ask("POST", "/v1/masked/destinations", { email: `many${n}@real.example` }, { key });
  for (let n = 0; n < 20; n += 1) assert.equal((await add(n)).status, 201);
  const { status, body } = await add(20);
  assert.deepEqual([status, body.limit_type, body.limit], [429, "daily", 20]);
  assert.ok(body.retry_after_seconds > 0 && body.retry_after_seconds <= 86_400);
  assert.deepEqual(await mailsTo("many20@real.example"), []);
  assert.equal((await add(3)).status, 200, "one that is there is shown");
  await api.world.db.execute("update masked_confirmation_day set day = day - 1");
  assert.equal((await add(20)).status, 201);
});
