// The first page of a long list is read off an index.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import type { Tx } from "../../platform/database/db.ts";
import { LAST_ID } from "../../platform/database/page.ts";
import { listEmails } from "./list-queries.ts";

let api: TestApi;

before(async () => {
  api = await testApi();
});
after(() => api.close());

for (const direction of ["asc", "desc"] as const) {
  test(`by the time of receipt, ${direction}, no row is sorted`, async () => {
    const { org_id } = await api.organization("starter");
    const plan = await api.world.db.transaction(async (tx) => {
      // As for a long list; an empty table would be read whole.
      await tx.query("set local enable_seqscan = off");
      const explained = { ...tx, query: (text: string, values: unknown[]) => tx.query(`explain ${text}`, values) };
      const page = { sort: "received_at", direction, limit: 20, offset: 0, below: LAST_ID } as const;
      return JSON.stringify(await listEmails(explained as unknown as Tx, org_id, {}, page));
    });
    assert.match(plan, /Index Scan/);
    assert.doesNotMatch(plan, /Sort/);
  });
}
