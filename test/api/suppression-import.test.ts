// A large list of another provider from its upload to the mail that is refused because of it, with its progress on the way.
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { startSuppressionWork } from "../../src/suppressions/background.ts";
import { type SendingApi, sendingApi } from "./sender.ts";

const ROWS = 30_000;

let api: SendingApi;

before(async () => {
  api = await sendingApi();
});
after(() => api?.close());

const addressOf = (index: number) => `customer${index}@imported.example`;

it("an import shows its progress, keeps the order of its rows, and its addresses get no mail", async () => {
  const rows = Array.from({ length: ROWS }, (_row, index) => `5.1.1,550 no such user,${addressOf(index)},1731571200`);
  const csv = `status,reason,email,created\n${rows.join("\n")}\n`;
  const { body, status } = await api.ask("POST", "/v1/imports/suppressions/preview", { csv });
  assert.deepEqual([status, body.job.provider, body.job.valid_rows], [201, "sendgrid", ROWS]);
  assert.equal((await api.send({ to: [addressOf(7)] })).status, 202, "a preview suppresses nothing");

  const path = `/v1/imports/suppressions/jobs/${body.job.id}`;
  assert.equal((await api.ask("POST", `${path}/commit`)).status, 202);
  const work = startSuppressionWork(api.world);
  const seen: number[] = [];
  try {
    for (;;) {
      const { job } = (await api.ask("GET", path)).body;
      if (seen.at(-1) !== job.committed_rows) seen.push(job.committed_rows);
      if (job.status !== "committing") break;
    }
  } finally {
    await work.stop();
  }
  assert.equal(seen.at(-1), ROWS);
  assert.ok(seen.length > 3, seen.join(" "));
  assert.deepEqual(
    seen,
    seen.toSorted((a, b) => a - b),
  );

  for (const index of [0, 7, ROWS - 1]) {
    const refused = await api.send({ to: [addressOf(index)] });
    assert.deepEqual([refused.status, refused.body.code], [422, "all_recipients_suppressed"]);
    assert.deepEqual(refused.body.suppressed, [{ email: addressOf(index), reason: "hard_bounce" }]);
  }
  const newest = (await api.ask("GET", "/v1/suppressions?limit=3&source=import:sendgrid")).body;
  assert.equal(newest.total, ROWS);
  assert.deepEqual(
    newest.suppressions.map(({ email }: { email: string }) => email),
    [ROWS - 1, ROWS - 2, ROWS - 3].map(addressOf),
  );
  assert.match(newest.suppressions[0].id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});
