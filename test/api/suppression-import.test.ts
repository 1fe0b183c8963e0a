// A large list of another provider from its upload to the mail that is refused because of it, with its progress on the way;
// and rows whose scope is nothing of the organization's.
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

it("an import declines rows for a domain or template that is not there, as an entry by hand is", async () => {
  const [owner, other] = [await api.organization(), await api.organization()];
  const add = async (domain: string, key: string) =>
    (await api.ask("POST", "/v1/domains", { domain }, { key })).body.id;
  const own = await add("own.example.com", owner.live_key);
  const foreign = await add("foreign.example.com", other.live_key);
  const scopes = [`domain,${own}`, `domain,${own.toUpperCase()}`, `domain,${foreign}`, `template,${own}`, "list,news"];
  const rows = [...scopes, `domain,${foreign}`].map((scope, at) => `scoped${at}@imported.example,${scope}`);
  const csv = ["email,scope_type,scope_id", ...rows].join("\n");
  const { body } = await api.ask("POST", "/v1/imports/suppressions/preview", { csv }, { key: owner.live_key });
  assert.deepEqual([body.job.valid_rows, body.job.invalid_rows], [3, 3]);
  const message = (type: string) => `'scope_id' is not the id of a ${type} of yours`;
  assert.deepEqual(body.job.errors, [
    { row: 3, column: "scope_id", value: foreign, message: message("domain") },
    { row: 4, column: "scope_id", value: own, message: message("template") },
    { row: 6, column: "scope_id", value: foreign, message: message("domain") },
  ]);
});
