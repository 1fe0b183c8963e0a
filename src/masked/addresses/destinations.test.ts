// Destinations and the aliases that forward to them, changed by two at the same moment.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { lockWaits } from "../../../test/support/lock-waits.ts";
import { until } from "../../../test/support/until.ts";
import { confirmationToken } from "./confirmation.ts";

let api: TestApi;
before(async () => {
  api = await testApi();
});
after(() => api.close());

test("an alias that bounces had switched off is on when its new mailbox confirms while it is being changed", async () => {
  const made = await api.ask("POST", "/v1/masked/aliases", { forward_to: ["full@real.example"] });
  const { id } = made.body.alias;
  const { body } = await api.ask("POST", "/v1/masked/destinations", { email: "next@real.example" });
  const token = confirmationToken(api.world, { org_id: api.org_id, id: body.destination.id });
  await api.world.db.execute(
    "update masked_alias set active = false, disabled_reason = 'destination_bouncing' where id = $1",
    [id],
  );
  const path = `/v1/masked/aliases/${id}`;
  // The change has seen the mailbox unconfirmed, and waits for the row of the old one.
  const [changed, confirmed] = await api.world.db.transaction(async (tx) => {
    await tx.query("select 1 from masked_alias_destination where alias_id = $1 for update", [id]);
    const change = api.ask("PUT", path, { forward_to: ["next@real.example"] });
    await until("the change waits", async () => (await lockWaits(api.world)) === 1);
    let isOver = false;
    const confirmation = api.ask("POST", `/masked/confirm/${token}`, undefined, { key: null }).finally(() => {
      isOver = true;
    });
    await until("the confirmation is over or waits", async () => isOver || (await lockWaits(api.world)) === 2);
    return [change, confirmation].map((one) => ({ one }));
  });
  assert.deepEqual([(await changed?.one)?.status, (await confirmed?.one)?.status], [200, 200]);
  const { alias } = (await api.ask("GET", path)).body;
  assert.deepEqual([alias.active, alias.disabled_reason, alias.forward_to], [true, null, ["next@real.example"]]);
});
