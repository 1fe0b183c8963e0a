import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { gzipSync } from "node:zlib";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { until } from "../../test/support/until.ts";
import { fixedClock } from "../platform/clock.ts";
import { commitImports, startSuppressionWork, sweepSuppressions } from "./background.ts";
import * as queries from "./import-queries.ts";

const CASES = join(import.meta.dirname, "../../../shared/data/suppression-csv");
const PREVIEW = "/v1/imports/suppressions/preview";
const DAY_MS = 86_400_000;
const BOUNCES = "status,reason,email,created\n5.1.1,550 5.1.1 no such user,A@example.com,1731571200\n";

type Case = {
  file: string;
  provider: string;
  valid_rows: [string, string, string][];
  invalid_or_skipped_rows: [string, null, string][];
};

describe("suppression imports", () => {
  const clock = fixedClock(Date.now());
  let api: TestApi;

  before(async () => {
    api = await testApi({}, (world) => ({ ...world, clock }));
  });
  after(() => api.close());

  async function upload(content: Buffer | string, options: { name?: string; provider?: string; key?: string } = {}) {
    const form = new FormData();
    if (options.provider) form.append("provider", options.provider);
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    form.append("file", new Blob([Uint8Array.from(bytes)]), options.name ?? "list.csv");
    return send(form, options.key);
  }
  async function send(form: FormData, key = api.live_key) {
    const request = new Request("http://localhost/", { method: "POST", body: form });
    const headers = { "content-type": request.headers.get("content-type") as string };
    return api.ask("POST", PREVIEW, Buffer.from(await request.arrayBuffer()), { key, headers });
  }
  const preview = (body: object, key = api.live_key) => api.ask("POST", PREVIEW, body, { key });
  const jobOf = async (id: string, key = api.live_key) =>
    api.ask("GET", `/v1/imports/suppressions/jobs/${id}`, undefined, { key });
  const commit = async (id: string, key = api.live_key) =>
    api.ask("POST", `/v1/imports/suppressions/jobs/${id}/commit`, undefined, { key });
  const list = async (key: string, query = "") =>
    (await api.ask("GET", `/v1/suppressions?limit=100&${query}`, undefined, { key })).body;

  describe("the providers' lists of the hand-out", {
    skip: existsSync(CASES) ? false : "the folder is missing",
  }, () => {
    const cases: Case[] = existsSync(CASES) ? JSON.parse(readFileSync(`${CASES}/expected.json`, "utf8")) : [];
    for (const expected of cases) {
      it(`previews ${expected.file} as ${expected.provider}, commits its valid rows, and twice changes nothing`, async () => {
        const { live_key } = await api.organization();
        const content = readFileSync(`${CASES}/${expected.file}`);
        const answer = await upload(content, { name: expected.file, key: live_key });
        assert.equal(answer.status, 201, JSON.stringify(answer.body));
        const { job } = answer.body;
        const emails = expected.valid_rows.map(([email]) => email.toLowerCase());
        assert.equal(job.provider, expected.provider === "generic" ? "custom" : expected.provider);
        assert.equal(job.valid_rows, expected.valid_rows.length);
        assert.equal(job.invalid_rows + job.duplicate_rows, expected.invalid_or_skipped_rows.length);
        assert.equal(job.total_rows, expected.valid_rows.length + expected.invalid_or_skipped_rows.length);
        assert.deepEqual(
          job.sample.map((row: Record<string, unknown>) => [row.email, row.reason]),
          expected.valid_rows.map(([email, reason]) => [email.toLowerCase(), reason]),
        );
        assert.equal((await commit(job.id, live_key)).status, 202);
        assert.equal((await commit(job.id, live_key)).status, 409);
        await commitImports(api.world);
        assert.equal((await jobOf(job.id, live_key)).body.job.committed_rows, expected.valid_rows.length);
        const committed = await list(live_key, `source=import:${job.provider}`);
        assert.deepEqual(committed.suppressions.map(({ email }: { email: string }) => email).sort(), emails.sort());
        const again = await preview({ csv: content.toString("utf8") }, live_key);
        assert.equal(again.body.job.already_suppressed_rows, expected.valid_rows.length);
        assert.equal((await commit(again.body.job.id, live_key)).status, 202);
        await commitImports(api.world);
        assert.deepEqual(await list(live_key, `source=import:${job.provider}`), committed);
      });
    }
  });

  describe("a preview", () => {
    it("answers 201 with every field of the job, and suppresses nothing", async () => {
      const answer = await upload(`${BOUNCES}5.1.1,x,a@EXAMPLE.com,1\n4.2.2,full,b@example.com,1\n5.1.1,x,nope,1\n`);
      assert.equal(answer.status, 201);
      const { id, ...job } = answer.body.job;
      assert.match(id, /^[0-9a-f-]{36}$/);
      assert.deepEqual(job, {
        status: "previewed",
        provider: "sendgrid",
        total_rows: 4,
        valid_rows: 1,
        invalid_rows: 2,
        duplicate_rows: 1,
        already_suppressed_rows: 0,
        by_reason: { hard_bounce: 1, complaint: 0, manual: 0, unsubscribe: 0 },
        sample: [
          {
            row: 1,
            email: "a@example.com",
            reason: "hard_bounce",
            scope_type: "org",
            scope_id: null,
            bounce_code: "550",
            diag_code: "5.1.1",
            note: "550 5.1.1 no such user",
          },
        ],
        errors: [
          {
            row: 3,
            column: "status",
            value: "4.2.2",
            message: "'status' is a temporary failure, which does not suppress",
          },
          { row: 4, column: "email", value: "nope", message: "the address is not a valid e-mail address" },
        ],
        questions: [],
        committed_rows: 0,
        created_at: new Date(clock.now()).toISOString(),
        expires_at: new Date(clock.now() + DAY_MS).toISOString(),
      });
      assert.equal((await list(api.live_key, "query=a@example.com")).total, 0);
      assert.deepEqual((await jobOf(id)).body.job, answer.body.job);
    });

    it("takes JSON with escapes, a provider, a file name, and gives the same job as the file", async () => {
      const csv = 'status,reason,email,created\r\n,"said ""no"" \u00fc \ud83d\ude00","j@example.com",1\r\n';
      const { body, status } = await preview({ provider: "sendgrid", filename: "suppression_bounces.csv", csv });
      assert.equal(status, 201);
      assert.equal(body.job.sample[0].note, 'said "no" \u00fc \ud83d\ude00');
      const blocks = await preview({ csv, filename: "suppression_blocks.csv" });
      assert.deepEqual([blocks.body.job.valid_rows, blocks.body.job.invalid_rows], [0, 1]);
      const generic = await preview({ csv: "email\nx@example.com\n", provider: "generic" });
      assert.equal(generic.body.job.provider, "custom");
      const nulls = await preview({ csv: "email\nx@example.com\n", provider: null });
      assert.equal(nulls.status, 201);
    });

    it("reads a large JSON body in pieces without breaking a character or an escape", async () => {
      const rows = Array.from(
        { length: 9_000 },
        (_row, index) => `r${index}@example.com,"\u00fc\u20ac\ud83d\ude00\\\t"`,
      );
      const text = JSON.stringify({ csv: `email,reason\n${rows.join("\n")}\n` });
      const asEscapes = text.replace(
        /[\u0080-\uffff]/g,
        (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
      );
      for (const body of [text, asEscapes]) {
        const answer = await api.ask("POST", PREVIEW, body);
        assert.equal(answer.status, 201, JSON.stringify(answer.body));
        assert.deepEqual([answer.body.job.valid_rows, answer.body.job.invalid_rows], [9_000, 0]);
        assert.equal(answer.body.job.sample[0].note, "\u00fc\u20ac\ud83d\ude00\\");
      }
    });

    it("takes a provider part before or after the file, and a gzipped file", async () => {
      const form = new FormData();
      form.append("file", new Blob(["email\nz@example.com\n"]), "x.csv");
      form.append("provider", "brevo");
      const answer = await send(form);
      assert.deepEqual([answer.status, answer.body.job.provider], [201, "brevo"]);
      const packed = await upload(gzipSync(BOUNCES), { name: "list.csv.gz" });
      assert.deepEqual([packed.status, packed.body.job.valid_rows], [201, 1]);
    });

    it("shows at most 100 errors and 20 sample rows, and counts all", async () => {
      const good = Array.from({ length: 30 }, (_row, index) => `good${index}@example.com`);
      const bad = Array.from({ length: 150 }, (_row, index) => `bad${index}`);
      const { job } = (await preview({ csv: ["email", ...bad, ...good].join("\n") })).body;
      assert.deepEqual([job.sample.length, job.errors.length, job.invalid_rows, job.valid_rows], [20, 100, 150, 30]);
    });

    it("makes an entry for each tag of a Mailgun unsubscribe, and takes a row for known only if all are", async () => {
      const { live_key } = await api.organization();
      const csv = 'address,tags,created_at\nt@example.com,"news,deals",x\nu@example.com,*,x\n';
      const { job } = (await preview({ csv }, live_key)).body;
      assert.deepEqual([job.provider, job.valid_rows, job.by_reason.unsubscribe], ["mailgun", 2, 2]);
      await commit(job.id, live_key);
      await commitImports(api.world);
      const entries = (await list(live_key)).suppressions.map(
        (row: Record<string, unknown>) => `${row.email} ${row.scope_type} ${row.scope_id}`,
      );
      assert.deepEqual(entries.sort(), [
        "t@example.com list deals",
        "t@example.com list news",
        "u@example.com org null",
      ]);
      assert.equal((await jobOf(job.id, live_key)).body.job.committed_rows, 2);
      const more = await preview(
        { csv: 'address,tags,created_at\nt@example.com,"news,other",x\nu@example.com,,x\n' },
        live_key,
      );
      assert.equal(more.body.job.already_suppressed_rows, 1);
    });

    it("refuses what is no list with 400 naming the field", async () => {
      const form = (name: string, value: string | Blob): FormData => {
        const made = new FormData();
        if (typeof value === "string") made.append(name, value);
        else made.append(name, value, "x.csv");
        return made;
      };
      const twice = form("file", new Blob(["email\na@b.example\n"]));
      twice.append("file", new Blob(["email\na@b.example\n"]), "y.csv");
      const answers: [Promise<{ status: number; body: Record<string, unknown> }>, string][] = [
        [upload(""), "file"],
        [upload("name,age\nx,1\n"), "file"],
        [upload("PK\x03\x04xxxxxxxx"), "file"],
        [upload(Buffer.concat([Buffer.from([0x1f, 0x8b, 8, 0]), Buffer.alloc(100, 7)])), "file"],
        [upload("email\na@b.example\n", { provider: "hotmail" }), "provider"],
        [send(form("list", new Blob(["x"]))), "list"],
        [send(form("file", "email")), "file"],
        [send(form("provider", "ses")), "file"],
        [send(twice), "file"],
        [preview({ csv: "" }), "csv"],
        [preview({ csv: "a\nb\n" }), "csv"],
        [preview({}), "csv"],
        [preview({ csv: 5 }), "csv"],
        [preview({ csv: "email\n", provider: "x" }), "provider"],
        [preview({ csv: "email\n", filename: 5 }), "filename"],
        [preview({ csv: "email\n", file: "x" }), "file"],
      ];
      for (const [asked, field] of answers) {
        const { status, body } = await asked;
        assert.equal(status, 400, JSON.stringify(body));
        assert.equal(body.field, field, JSON.stringify(body));
      }
    });

    it("refuses broken JSON, no body, another content type and no key", async () => {
      for (const body of ['{"csv":"a', '{"csv":"\\x"}', '{"csv":"a\nb"}', "[]x"]) {
        assert.equal((await api.ask("POST", PREVIEW, body)).body.code, "invalid_json", body);
      }
      assert.equal((await api.ask("POST", PREVIEW, "[]")).status, 400);
      assert.equal((await api.ask("POST", PREVIEW)).status, 400);
      const headers = { "content-type": "text/csv" };
      assert.equal((await api.ask("POST", PREVIEW, "email\n", { headers })).status, 400);
      assert.equal((await api.ask("POST", PREVIEW, { csv: "x" }, { key: null })).status, 401);
    });

    it("refuses broken multipart bodies", async () => {
      const part = (name: string, more = "") => `--b\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n`;
      const file = part("file", '; filename="x.csv"');
      for (const [type, body] of [
        ["multipart/form-data", `${file}email\r\n--b--\r\n`],
        ["multipart/form-data; boundary=b", "no parts at all"],
        ["multipart/form-data; boundary=b", `${file}email\na@example.com`],
        ["multipart/form-data; boundary=b", `${part("provider")}${"x".repeat(2_000)}\r\n--b--\r\n`],
        ["multipart/form-data; boundary=b", `${part("__proto__")}x\r\n--b--\r\n`],
        ["multipart/form-data; boundary=b", `${`${part("provider")}ses\r\n`.repeat(50)}--b--\r\n`],
        ["multipart/form-data; boundary=b", ""],
      ] as const) {
        const answer = await api.ask("POST", PREVIEW, body, { headers: { "content-type": type } });
        assert.equal(answer.status, 400, `${body.slice(0, 60)} ${JSON.stringify(answer.body)}`);
      }
    });

    it("refuses a file over 25 MiB and a JSON body over 40 MiB", async () => {
      const file = await upload(Buffer.alloc(25 * 1024 * 1024 + 1, "a"));
      assert.deepEqual([file.status, file.body.code], [400, "payload_too_large"]);
      const json = await api.ask("POST", PREVIEW, Buffer.alloc(40 * 1024 * 1024 + 1, " "));
      assert.deepEqual([json.status, json.body.code], [400, "payload_too_large"]);
    });

    it("leaves no trace of a preview that was refused", async () => {
      const jobs = () => api.world.db.query("select 1 from suppression_import where status = 'reading'");
      assert.equal((await preview({ csv: "name\nx\n" })).status, 400);
      assert.deepEqual(await jobs(), []);
    });
  });

  describe("a commit", () => {
    it("answers 202 with the job, then 409; of twenty at once one succeeds", async () => {
      const { job } = (await upload("email\nrace@example.com\n")).body;
      const answers = await Promise.all(Array.from({ length: 20 }, () => commit(job.id)));
      const won = answers.filter(({ status }) => status === 202);
      assert.equal(won.length, 1);
      assert.deepEqual([won[0]?.body.job.id, won[0]?.body.job.status], [job.id, "committing"]);
      const lost = answers.filter(({ status }) => status === 409);
      assert.equal(lost.length, 19);
      assert.equal(lost[0]?.body.code, "invalid_state");
      await commitImports(api.world);
      const done = (await jobOf(job.id)).body.job;
      assert.deepEqual([done.status, done.committed_rows], ["committed", 1]);
      assert.equal((await commit(job.id)).status, 409);
    });

    it("of an empty list ends at once", async () => {
      const { job } = (await upload("status,reason,email,created\n")).body;
      assert.equal((await commit(job.id)).status, 202);
      await commitImports(api.world);
      assert.equal((await jobOf(job.id)).body.job.status, "committed");
    });

    it("strengthens what is there and weakens nothing", async () => {
      const { live_key } = await api.organization();
      const expires_at = new Date(clock.now() + DAY_MS).toISOString();
      const add = (body: object) => api.ask("POST", "/v1/suppressions", body, { key: live_key });
      await add({ email: "weak@example.com", expires_at, note: "kept" });
      const csv = "email,reason\nweak@example.com,complaint\nnew@example.com,bounce\n";
      for (let round = 0; round < 2; round += 1) {
        const { job } = (await preview({ csv: round === 0 ? csv : csv.replace("complaint", "manual") }, live_key)).body;
        await commit(job.id, live_key);
        await commitImports(api.world);
        const weak = (await list(live_key, "query=weak")).suppressions[0];
        assert.deepEqual([weak.reason, weak.expires_at, weak.note], ["complaint", null, "kept"]);
      }
      assert.equal((await list(live_key)).total, 2);
      assert.equal((await list(live_key, "reason=complaint&source=import:custom")).total, 1);
      assert.equal((await list(live_key, "source=manual")).total, 0);
    });

    it("keeps the strongest reason and the longest time of a file's rows for one address, in whatever order", async () => {
      const day = (days: number) => new Date(clock.now() + days * DAY_MS).toISOString();
      const rows = [
        "a,manual,",
        `a,complaint,${day(1)}`,
        `b,bounce,${day(2)}`,
        `b,manual,${day(3)}`,
        "c,bounce,",
        "c,manual,",
      ];
      // Blocks hold 2,000 entries: of the second list the stronger rows come in another block than the weaker ones.
      const filler = Array.from({ length: 2_100 }, (_, at) => `filler${at},manual,`);
      for (const between of [[], filler]) {
        for (const order of [rows, rows.toReversed()]) {
          const { live_key } = await api.organization();
          const all = [...order.slice(0, 3), ...between, ...order.slice(3)].map((row) =>
            row.replace(",", "@example.com,"),
          );
          const csv = ["email,reason,expires_at", ...all].join("\n");
          const { job } = (await preview({ csv }, live_key)).body;
          assert.deepEqual([job.valid_rows, job.duplicate_rows, job.invalid_rows], [3 + between.length, 3, 0]);
          assert.equal((await commit(job.id, live_key)).status, 202);
          await commitImports(api.world);
          const ended = (await jobOf(job.id, live_key)).body.job;
          assert.deepEqual([ended.status, ended.committed_rows], ["committed", 3 + between.length]);
          const kept = [];
          for (const name of ["a", "b", "c"]) kept.push(...(await list(live_key, `query=${name}@e`)).suppressions);
          assert.deepEqual(
            kept.map(({ email, reason, expires_at }) => [email[0], reason, expires_at]),
            [
              ["a", "complaint", null],
              ["b", "hard_bounce", day(3)],
              ["c", "hard_bounce", null],
            ],
          );
          const again = (await preview({ csv }, live_key)).body.job;
          assert.equal(again.already_suppressed_rows, 3 + between.length);
        }
      }
    });

    it("is of every row that the preview called valid: odd times are declined there", async () => {
      const { live_key } = await api.organization();
      const times = ["46023", "12/31/12000", "0", "2020-01-01", "9999-12-31T23:59:59Z"];
      const csv = ["email,reason,expires_at", ...times.map((time, at) => `odd${at}@example.com,bounce,${time}`)].join(
        "\n",
      );
      const { job } = (await preview({ csv }, live_key)).body;
      assert.deepEqual([job.valid_rows, job.invalid_rows], [1, 4]);
      assert.deepEqual(
        job.errors.map(({ message }: { message: string }) => message),
        [...Array(3).fill("'expires_at' is not a time"), "'expires_at' is in the past"],
      );
      await commit(job.id, live_key);
      await commitImports(api.world);
      const { suppressions } = await list(live_key);
      assert.deepEqual([suppressions.length, suppressions[0].expires_at], [1, "9999-12-31T23:59:59.000Z"]);
    });

    it("answers with a preview where a character is half, in a note, a scope, a name of a column or a value", async () => {
      const { live_key } = await api.organization();
      const rows = [
        { email: "n1@example.com", reason: "bounce", note: "\ud800" },
        { email: "n2@example.com", reason: "bounce", note: `${"x ".repeat(249)}y😀 z` },
        { email: "n3@example.com", reason: "manual", scope_type: "list", scope_id: "\udc00" },
        { email: "n4@example.com", reason: "never asked \ud800", expires_at: "\udfff" },
        { email: "n\ud800@example.com", reason: "bounce", "od\u0000d\ud800": "x" },
      ];
      const answer = await upload(rows.map((row) => JSON.stringify(row)).join("\n"), {
        key: live_key,
        name: "list.json",
      });
      assert.equal(answer.status, 201, JSON.stringify(answer.body));
      assert.equal(answer.body.job.total_rows, 5);
      const csv = `email,reason,"sco\u0000pe_type",scope_id\na@example.com,manual,list,x\nb@example.com,manual,nowhere,x\n`;
      const named = await upload(csv, { key: live_key });
      assert.equal(named.status, 201, JSON.stringify(named.body));
      assert.equal(named.body.job.errors.length, 1);
    });

    it("expires after a day, as seen and as committed", async () => {
      const { job } = (await upload(BOUNCES)).body;
      clock.advance(DAY_MS);
      assert.equal((await jobOf(job.id)).body.job.status, "expired");
      const late = await commit(job.id);
      assert.deepEqual([late.status, late.body.code], [409, "invalid_state"]);
      await sweepSuppressions(api.world);
      assert.equal((await jobOf(job.id)).body.job.status, "expired");
      assert.deepEqual(
        await api.world.db.query("select 1 from suppression_import_block where job_id = $1", [job.id]),
        [],
      );
      clock.advance(40 * DAY_MS);
      await sweepSuppressions(api.world);
      assert.equal((await jobOf(job.id)).status, 404);
    });

    it("goes on after a crash between any two blocks without losing or doubling a row", async () => {
      const { live_key } = await api.organization();
      const rows = Array.from({ length: 5_000 }, (_row, index) => `crash${index}@example.com`);
      const { job } = (await upload(`email\n${rows.join("\n")}\n`, { key: live_key })).body;
      await commit(job.id, live_key);
      const first = await queries.claimJob(api.world.db, 0);
      assert.equal(first?.id, job.id);
      const advanceOne = () =>
        api.world.db.transaction(async (tx) => {
          if (!first || !(await queries.advance(tx, first, first.next_block, 0))) return false;
          await queries.commitBlock(tx, first, { now: new Date(clock.now()), position: first.next_block });
          return true;
        });
      assert.equal(await advanceOne(), true);
      assert.equal((await jobOf(job.id, live_key)).body.job.committed_rows, 2_000);
      assert.equal(await commitImports(api.world), 1);
      // The stalled worker comes back: the fence stops it.
      assert.equal(await advanceOne(), false);
      const done = (await jobOf(job.id, live_key)).body.job;
      assert.deepEqual([done.status, done.committed_rows], ["committed", 5_000]);
      assert.equal((await list(live_key)).total, 5_000);
      const left = await api.world.db.query("select 1 from suppression_import_block where job_id = $1", [job.id]);
      assert.deepEqual(left, []);
    });

    it("that fails again and again ends as failed and says so", async () => {
      const { job } = (await upload("email\nfails@example.com\n")).body;
      await commit(job.id);
      await api.world.db.execute(
        `update suppression_import_block set entries = '[{"email":"x","reason":"nonsense"}]' where job_id = $1`,
        [job.id],
      );
      for (let claim = 0; claim < 5; claim += 1) {
        await commitImports(api.world);
        await api.world.db.execute(
          "update suppression_import set lease_until = now() where id = $1 and status = 'committing'",
          [job.id],
        );
      }
      const failed = (await jobOf(job.id)).body.job;
      assert.deepEqual([failed.status, failed.committed_rows], ["failed", 0]);
      assert.equal(failed.errors.at(-1).row, null);
      assert.equal((await commit(job.id)).status, 409);
    });

    it("is done by the clock role's work, which stops when asked", async () => {
      const { job } = (await upload("email\nbackground@example.com\n")).body;
      const work = startSuppressionWork(api.world);
      await commit(job.id);
      await until("the job is committed", async () => (await jobOf(job.id)).body.job.status === "committed");
      await work.stop();
      assert.equal((await list(api.live_key, "query=background")).total, 1);
    });
  });

  it("keeps jobs from other organizations, and lets test keys import", async () => {
    const { job } = (await upload("email\nmine@example.com\n", { key: api.test_key })).body;
    const other = await api.organization();
    assert.equal((await jobOf(job.id, other.live_key)).status, 404);
    assert.equal((await commit(job.id, other.live_key)).status, 404);
    assert.equal((await jobOf("nothing")).status, 404);
    assert.equal((await commit("nothing")).status, 404);
    assert.equal((await commit(job.id, api.test_key)).status, 202);
  });

  it("does not keep other requests waiting while it reads", async (t) => {
    const rows = Array.from({ length: 60_000 }, (_row, index) => `wait${index}@example.com`).join("\n");
    let reading = true;
    const done = upload(`email\n${rows}\n`).then((answer) => {
      reading = false;
      return answer;
    });
    let answered = 0;
    while (reading) {
      await api.ask("GET", "/v1/suppressions/check?email=a@example.com");
      answered += 1;
    }
    assert.equal((await done).body.job.valid_rows, 60_000);
    // A reader that does not let go of the event loop would let through one or two.
    t.diagnostic(`${answered} requests were answered meanwhile`);
    assert.ok(answered >= 4, `only ${answered} requests were answered meanwhile`);
  });
});
