// What one organization exports is imported by another without a loss: as CSV, and as the list's JSON.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { fixedClock } from "../platform/clock.ts";
import { commitImports } from "./background.ts";
import { mergeEntries } from "./queries.ts";
import type { NewEntry } from "./types.ts";

const DAY_MS = 86_400_000;
const MESSAGE = "01890a5d-ac96-774b-bcce-b302099a8057";

describe("a list that Postern exported", () => {
  const start = Date.now();
  const clock = fixedClock(start);
  let api: TestApi;

  before(async () => {
    api = await testApi({}, (world) => ({ ...world, clock }));
  });
  after(() => api.close());

  const ago = (days: number) => new Date(start - days * DAY_MS);
  const entry = (orgId: string, known: Partial<NewEntry> & { email: string; created_at: Date }): NewEntry => ({
    org_id: orgId,
    id: api.world.random.uuid(),
    ...{ reason: "manual", scope_type: "org", scope_id: "", source: "delivery_event", source_message_id: null },
    ...{ bounce_code: null, diag_code: null, feedback_type: null, note: null, expires_at: null },
    ...known,
  });
  const listed = async (key: string) =>
    (await api.ask("GET", "/v1/suppressions?limit=100", undefined, { key })).body.suppressions.map(
      ({ id: _id, source: _source, ...rest }: Record<string, unknown>) => rest,
    );
  async function importList(key: string, csv: string) {
    const { body } = await api.ask("POST", "/v1/imports/suppressions/preview", { csv }, { key });
    assert.equal(body.job?.invalid_rows, 0, JSON.stringify(body));
    await api.ask("POST", `/v1/imports/suppressions/jobs/${body.job.id}/commit`, undefined, { key });
    await commitImports(api.world);
  }

  it("is the same list elsewhere: times, reports, messages and notes, in its order", async () => {
    const from = await api.organization();
    const note = `=first line\nsecond line ${"x".repeat(900)}`;
    const id = (days: number) => api.world.random.uuid().replace(/^.{8}-.{4}/, hexOf(ago(days)));
    const entries = [
      entry(from.org_id, {
        ...{ id: id(90), email: "old@example.com", reason: "complaint", feedback_type: "abuse" },
        ...{ source_message_id: MESSAGE, created_at: ago(90) },
      }),
      entry(from.org_id, {
        ...{ id: id(30), email: "gone@example.com", reason: "hard_bounce", bounce_code: "550", diag_code: "5.1.1" },
        ...{ source_message_id: MESSAGE, created_at: ago(30) },
      }),
      entry(from.org_id, { id: id(2), email: "noted@example.com", note, expires_at: ago(-5), created_at: ago(2) }),
      entry(from.org_id, {
        ...{ id: id(1), email: "list@example.com", reason: "unsubscribe", scope_type: "list", scope_id: "news" },
        created_at: ago(1),
      }),
    ];
    await api.world.db.asOrg(from.org_id, (tx) => mergeEntries(tx, ago(0), entries));
    const before = await listed(from.live_key);
    assert.equal(before[3].created_at, ago(90).toISOString());
    const csv = (await api.ask("GET", "/v1/suppressions/export", undefined, { key: from.live_key })).body;
    const json = (await api.ask("GET", "/v1/suppressions", undefined, { key: from.live_key })).body;
    for (const text of [csv, JSON.stringify(json)]) {
      const to = await api.organization();
      await importList(to.live_key, text);
      assert.deepEqual(await listed(to.live_key), before);
    }
  });

  it("suppresses where a time or an id is wrong, or the time is still to come", async () => {
    const to = await api.organization();
    const rows = [
      `a@example.com,x,29.11.2026 08:00`,
      `b@example.com,,${ago(-3).toISOString()}`,
      "c@example.com,,1812-01-01",
    ];
    const heading = "email,reason,scope_type,source_message_id,created_at";
    const csv = [heading, ...rows.map((row) => row.replace(",", ",manual,org,"))].join("\n");
    await importList(to.live_key, csv);
    for (const row of await listed(to.live_key)) {
      assert.deepEqual([row.created_at, row.source_message_id], [new Date(start).toISOString(), null], row.email);
    }
  });
});

/** The first 48 bits of a UUIDv7 as its text begins. */
function hexOf(time: Date): string {
  const hex = time.getTime().toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
}
