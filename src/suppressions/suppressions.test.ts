import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { fixedClock } from "../platform/clock.ts";
import type { Query } from "../platform/database/db.ts";
import { sweepSuppressions } from "./background.ts";
import { type AutomaticEntry, addSuppression, findSuppressed, suppress, unsubscribe } from "./suppressions.ts";

const HOUR_MS = 3_600_000;
const DOMAIN = "01890000-0000-7000-8000-00000000000a";
const OTHER = "01890000-0000-7000-8000-00000000000b";
const NOWHERE = { domain_id: DOMAIN, template_id: null, list: null };

describe("the face of suppressions", () => {
  const clock = fixedClock(Date.now());
  const statements: string[] = [];
  let api: TestApi;

  before(async () => {
    api = await testApi({}, (world) => ({ ...world, clock, db: { ...world.db, ...noting(world.db) } }));
  });
  after(() => api.close());

  function noting(db: Query): Pick<Query, "query"> {
    return {
      query(text, values) {
        statements.push(text);
        return db.query(text, values);
      },
    };
  }

  const bounce = (org_id: string, email: string, more: Partial<AutomaticEntry> = {}): AutomaticEntry => ({
    org_id,
    email,
    reason: "hard_bounce",
    source_message_id: OTHER,
    bounce_code: "550",
    diag_code: "5.1.1",
    feedback_type: null,
    ...more,
  });
  const record = (entries: AutomaticEntry[]) => api.world.db.transaction((tx) => suppress(api.world, tx, entries));
  const list = async (key: string, query = "") =>
    (await api.ask("GET", `/v1/suppressions?limit=100&${query}`, undefined, { key })).body;

  describe("findSuppressed", () => {
    it("answers for the addresses as given, in any case, and for the asking organization only", async () => {
      const { org_id } = await api.organization();
      const other = await api.organization();
      await record([bounce(org_id, "Gone@example.com")]);
      const find = findSuppressed(api.world);
      const emails = ["GONE@example.com", "fine@example.com", "gone@example.com"];
      const found = await find(org_id, { ...NOWHERE, emails });
      assert.deepEqual([...found.keys()], ["GONE@example.com", "gone@example.com"]);
      const { id, ...entry } = found.get("gone@example.com") ?? { id: null };
      assert.ok(id);
      assert.deepEqual(entry, { email: "gone@example.com", reason: "hard_bounce", scope_type: "org", scope_id: null });
      assert.equal((await find(other.org_id, { ...NOWHERE, emails })).size, 0);
      assert.equal((await find(org_id, { ...NOWHERE, emails: [] })).size, 0);
    });

    it("applies a scoped entry within its scope only, and names the strongest of several", async () => {
      const { org_id, live_key: key } = await api.organization();
      const email = "scoped@example.com";
      const domain = (await api.ask("POST", "/v1/domains", { domain: "scoped.example" }, { key })).body.id;
      const news = { name: "News", slug: "news", subject: "News", text_body: "News" };
      const template = (await api.ask("POST", "/v1/templates", news, { key })).body.template.id;
      const add = (scope_type: "domain" | "template" | "list" | "stream", scope_id: string) =>
        addSuppression(api.world, org_id, { email, reason: "unsubscribe", scope_type, scope_id });
      await add("domain", domain);
      await add("template", template);
      await add("list", "news");
      await add("stream", "bulk");
      const find = findSuppressed(api.world);
      const nothing = {
        domain_id: OTHER,
        template_id: DOMAIN,
        list: "deals",
        streams: ["transactional", "news", "a\0b"],
      };
      for (const [mail, scope] of [
        [nothing, undefined],
        [{ domain_id: null, template_id: null, list: null }, undefined],
        [{ ...nothing, domain_id: domain }, "domain"],
        [{ ...nothing, template_id: template }, "template"],
        [{ ...nothing, list: "news" }, "list"],
        [{ ...nothing, streams: ["bulk", "promo"] }, "stream"],
      ] as const) {
        assert.equal((await find(org_id, { ...mail, emails: [email] })).get(email)?.scope_type, scope);
      }
      await record([bounce(org_id, email, { reason: "complaint" })]);
      const all = { domain_id: domain, template_id: template, list: "news", streams: ["bulk"], emails: [email] };
      assert.equal((await find(org_id, all)).get(email)?.reason, "complaint");
    });

    it("does not see an entry whose time is over", async () => {
      const { org_id } = await api.organization();
      const email = "until@example.com";
      await addSuppression(api.world, org_id, { email, expires_at: new Date(clock.now() + HOUR_MS).toISOString() });
      const find = findSuppressed(api.world);
      assert.equal((await find(org_id, { ...NOWHERE, emails: [email] })).size, 1);
      clock.advance(HOUR_MS);
      assert.equal((await find(org_id, { ...NOWHERE, emails: [email] })).size, 0);
    });

    it("asks once for what arrives together, of whatever organization", async () => {
      const organizations = await Promise.all([api.organization(), api.organization()]);
      await record(organizations.map(({ org_id }) => bounce(org_id, "many7@example.com")));
      const find = findSuppressed(api.world);
      statements.length = 0;
      const found = await Promise.all(
        Array.from({ length: 200 }, (_ask, index) =>
          find(organizations[index % 2]?.org_id as string, { ...NOWHERE, emails: [`many${index >> 1}@example.com`] }),
        ),
      );
      assert.equal(found.filter(({ size }) => size === 1).length, 2);
      assert.equal(statements.length, 1);
    });
  });

  describe("suppress", () => {
    it("records what the event says, org-wide, and the same again changes nothing", async () => {
      const { org_id, live_key } = await api.organization();
      const entry = bounce(org_id, "Event@Example.com", { feedback_type: "abuse", reason: "complaint" });
      await record([entry, entry, { ...entry, email: "event@example.com" }]);
      const first = await list(live_key);
      assert.equal(first.total, 1);
      const { id, created_at, ...row } = first.suppressions[0];
      assert.ok(id && created_at);
      assert.deepEqual(row, {
        email: "event@example.com",
        reason: "complaint",
        scope_type: "org",
        scope_id: null,
        source: "delivery_event",
        source_message_id: OTHER,
        bounce_code: "550",
        diag_code: "5.1.1",
        feedback_type: "abuse",
        note: null,
        expires_at: null,
      });
      clock.advance(1);
      await record([entry, { ...entry, reason: "hard_bounce", source_message_id: null }]);
      assert.deepEqual(await list(live_key), first);
    });

    it("makes a manual entry with an end permanent, and keeps its id, note and time", async () => {
      const { org_id, live_key } = await api.organization();
      const expires_at = new Date(clock.now() + HOUR_MS).toISOString();
      const { suppression } = await addSuppression(api.world, org_id, {
        email: "was@example.com",
        note: "n",
        expires_at,
      });
      await record([bounce(org_id, "was@example.com")]);
      const row = (await list(live_key)).suppressions[0];
      assert.deepEqual(
        [row.id, row.reason, row.source, row.note, row.expires_at],
        [suppression.id, "hard_bounce", "delivery_event", "n", null],
      );
      const { created } = await addSuppression(api.world, org_id, { email: "was@example.com", expires_at, note: "m" });
      const kept = (await list(live_key)).suppressions[0];
      assert.equal(created, false);
      assert.deepEqual([kept.reason, kept.note, kept.expires_at], ["hard_bounce", "m", null]);
    });

    it("takes thousands of entries, none, and two batches of the same addresses at once", async () => {
      const { org_id, live_key } = await api.organization();
      const entries = Array.from({ length: 2_500 }, (_entry, index) => bounce(org_id, `b${index}@example.com`));
      await record([]);
      await Promise.all([record(entries), record([...entries].reverse())]);
      assert.equal((await list(live_key, "reason=hard_bounce")).total, 2_500);
    });

    it("leaves nothing when the transaction around it fails", async () => {
      const { org_id, live_key } = await api.organization();
      const failing = api.world.db.transaction(async (tx) => {
        await suppress(api.world, tx, [bounce(org_id, "rolled@example.com")]);
        throw new Error("no");
      });
      await assert.rejects(failing, /no/);
      assert.equal((await list(live_key)).total, 0);
    });
  });

  describe("unsubscribe", () => {
    const request = { email: "Leaver@example.com", domain_id: DOMAIN, source_message_id: OTHER };
    const leave = (org_id: string, listName: string | null) =>
      api.world.db.asOrg(org_id, (tx) => unsubscribe(api.world, tx, { ...request, org_id, list: listName }));

    it("stops mail of the list, else of the sender domain, and nothing else; twice is once", async () => {
      const { org_id, live_key } = await api.organization();
      await leave(org_id, "news");
      await leave(org_id, "news");
      await leave(org_id, null);
      const { suppressions } = await list(live_key);
      assert.deepEqual(
        suppressions.map((row: Record<string, unknown>) => [
          row.email,
          row.reason,
          row.scope_type,
          row.scope_id,
          row.source,
        ]),
        [
          ["leaver@example.com", "unsubscribe", "domain", DOMAIN, "unsubscribe"],
          ["leaver@example.com", "unsubscribe", "list", "news", "unsubscribe"],
        ],
      );
      const mail = { domain_id: OTHER, template_id: null, list: "deals", emails: ["leaver@example.com"] };
      assert.equal((await findSuppressed(api.world)(org_id, mail)).size, 0);
    });

    it("is not shortened by the sender", async () => {
      const { org_id } = await api.organization();
      await leave(org_id, "news");
      const expires_at = new Date(clock.now() + HOUR_MS).toISOString();
      const scope = { scope_type: "list" as const, scope_id: "news" };
      const put = await addSuppression(api.world, org_id, {
        ...request,
        ...scope,
        reason: "unsubscribe",
        expires_at,
      } as never);
      assert.deepEqual([put.created, put.suppression.expires_at, put.suppression.source], [false, null, "unsubscribe"]);
    });
  });

  describe("the counts", () => {
    it("stay exact through adding, changing, removing, expiring and folding", async () => {
      const { org_id, live_key } = await api.organization();
      const totals = async () =>
        Promise.all(
          ["", "reason=manual", "reason=hard_bounce", "source=delivery_event"].map(
            async (query) => (await list(live_key, query)).total,
          ),
        );
      const expires_at = new Date(clock.now() + HOUR_MS).toISOString();
      for (let index = 0; index < 120; index += 1) {
        await addSuppression(api.world, org_id, {
          email: `c${index}@example.com`,
          ...(index < 10 ? { expires_at } : {}),
        });
      }
      await record([bounce(org_id, "c50@example.com"), bounce(org_id, "d@example.com")]);
      await api.ask("DELETE", "/v1/suppressions/c51%40example.com", undefined, { key: live_key });
      assert.deepEqual(await totals(), [120, 118, 2, 2]);
      clock.advance(HOUR_MS);
      assert.deepEqual(await totals(), [110, 108, 2, 2]);
      await sweepSuppressions(api.world);
      assert.deepEqual(await totals(), [110, 108, 2, 2]);
      const rows = await api.world.db.query("select 1 from suppression_count where org_id = $1", [org_id]);
      assert.equal(rows.length, 2);
      const left = await api.world.db.query("select 1 from suppression where org_id = $1", [org_id]);
      assert.equal(left.length, 110);
    });

    it("count what a process of an older version writes beside this one", async () => {
      const { org_id, live_key } = await api.organization();
      await addSuppression(api.world, org_id, { email: "new@example.com" });
      await api.world.db.transaction(async (tx) => {
        await tx.execute("set local postern.sums = ''"); // older versions know no such setting
        await tx.execute(
          `insert into suppression (org_id, id, email, reason, scope_type, source, created_at)
           select $1, gen_random_uuid(), 'old' || n || '@example.com', 'manual', 'org', 'manual', now() from generate_series(1, 3) n`,
          [org_id],
        );
        await tx.execute("delete from suppression where org_id = $1 and email = 'old3@example.com'", [org_id]);
        await tx.execute(
          "update suppression set reason = 'complaint' where org_id = $1 and email = 'new@example.com'",
          [org_id],
        );
      });
      const totals = await Promise.all(
        ["", "reason=manual", "reason=complaint"].map(async (query) => (await list(live_key, query)).total),
      );
      assert.deepEqual(totals, [3, 2, 1]);
    });
  });
});
