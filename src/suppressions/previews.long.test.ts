// Lists of more than 100,000 rows: answered at once, read in the background.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { until } from "../../test/support/until.ts";
import { commitImports } from "./background.ts";

const ROWS = 100_001;
const PREVIEW = "/v1/imports/suppressions/preview";

let api: TestApi;

before(async () => {
  api = await testApi();
});
after(() => api?.close());

const list = (rows: number) => `email\n${Array.from({ length: rows }, (_, n) => `c${n}@large.example\n`).join("")}`;
const jobOf = async (id: string) => (await api.ask("GET", `/v1/imports/suppressions/jobs/${id}`)).body.job;
const ended = (id: string) =>
  until("it is read", async () => {
    const job = await jobOf(id);
    return job.status !== "reading" && job;
  });

describe("a preview of more than 100,000 rows", () => {
  it("is answered 202 with a job that is read in the background, and can be committed then", async () => {
    const { status, body } = await api.ask("POST", PREVIEW, { csv: list(ROWS) });
    assert.deepEqual([status, body.job.status, body.job.total_rows], [202, "reading", 0]);
    const early = await api.ask("POST", `/v1/imports/suppressions/jobs/${body.job.id}/commit`);
    assert.deepEqual([early.status, early.body.code], [409, "invalid_state"]);
    const counts: number[] = [];
    const job = await until("it is read", async () => {
      const now = await jobOf(body.job.id);
      counts.push(now.total_rows);
      return now.status !== "reading" && now;
    });
    assert.deepEqual([job.status, job.total_rows, job.valid_rows, job.errors], ["previewed", ROWS, ROWS, []]);
    assert.deepEqual(
      counts,
      counts.toSorted((a, b) => a - b),
    );
    assert.equal((await api.ask("POST", `/v1/imports/suppressions/jobs/${job.id}/commit`)).status, 202);
    await commitImports(api.world);
    assert.deepEqual([(await jobOf(job.id)).committed_rows, (await jobOf(job.id)).status], [ROWS, "committed"]);
  });

  it("is answered 201 with the finished preview at 100,000 rows", async () => {
    const { status, body } = await api.ask("POST", PREVIEW, { csv: list(ROWS - 1) });
    assert.deepEqual([status, body.job.status, body.job.valid_rows], [201, "previewed", ROWS - 1]);
  });

  it("is found out on the way where the list has no lines", async () => {
    const csv = JSON.stringify(Array.from({ length: ROWS + 20_000 }, (_, n) => `j${n}@large.example`));
    const { status, body } = await api.ask("POST", PREVIEW, { csv });
    assert.deepEqual([status, body.job.status], [202, "reading"]);
    assert.ok(body.job.total_rows > 100_000);
    const job = await ended(body.job.id);
    assert.deepEqual([job.status, job.valid_rows], ["previewed", ROWS + 20_000]);
  });

  it("fails with a sentence where the list is none, and keeps no rows", async () => {
    const { status, body } = await api.ask("POST", PREVIEW, { csv: `name\n${"somebody\n".repeat(ROWS + 1)}` });
    assert.equal(status, 202);
    const job = await ended(body.job.id);
    assert.equal(job.status, "failed");
    assert.match(job.errors[0].message, /^the 'csv' field has no column that holds e-mail addresses/);
    const blocks = await api.world.db.query("select 1 from suppression_import_block where job_id = $1", [body.job.id]);
    assert.deepEqual(blocks, []);
  });

  it("has failed where the process that read it is no more", async () => {
    const id = api.world.random.uuid();
    const insert = (lease: string) =>
      api.world.db.execute(
        `insert into suppression_import (org_id, id, status, provider, created_at, expires_at, lease_until)
         values ($1, $2, 'reading', 'custom', now(), now() + interval '1 day', now() + $3::interval)
         on conflict (org_id, id) do update set lease_until = excluded.lease_until`,
        [api.org_id, id, lease],
      );
    await insert("10 s");
    assert.equal((await jobOf(id)).status, "reading");
    await insert("-1 s");
    assert.equal((await jobOf(id)).status, "failed");
  });
});
