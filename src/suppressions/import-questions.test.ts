import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { commitImports } from "./background.ts";

let api: TestApi;

before(async () => {
  api = await testApi();
});
after(() => api?.close());

test("a preview asks about a column of yes and no that is not known, and nobody who has a no there is suppressed", async () => {
  const csv = "Email,Is Excluded From Campaigns\nno@x.example,false\nyes@x.example,true\n";
  const { status, body } = await api.ask("POST", "/v1/imports/suppressions/preview", { csv });
  assert.deepEqual([status, body.job.valid_rows, body.job.invalid_rows], [201, 1, 1]);
  const [question, ...others] = body.job.questions;
  assert.deepEqual([question.column, others], ["Is Excluded From Campaigns", []]);
  assert.match(question.message, /rows with a no there are not suppressed/);
  await api.ask("POST", `/v1/imports/suppressions/jobs/${body.job.id}/commit`);
  await commitImports(api.world);
  const { suppressions } = (await api.ask("GET", "/v1/suppressions")).body;
  assert.deepEqual(
    suppressions.map(({ email }: { email: string }) => email),
    ["yes@x.example"],
  );
  const { job } = (await api.ask("GET", `/v1/imports/suppressions/jobs/${body.job.id}`)).body;
  assert.deepEqual(job.questions, [question]);
});
