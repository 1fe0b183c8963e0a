// Two api processes on one database under load never let one recipient too many through.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { freePort } from "../support/free-port.ts";
import {
  type Asked,
  ask,
  type PosternProcess,
  type Posterns,
  posternSettings,
  setUpDomain,
  startPostern,
} from "../support/postern-process.ts";

const PARALLEL = 8;
/** The processes look at the clock file again after 50 ms. */
const CLOCK_REREAD_MS = 60;

let database: TestDatabase;
let dns: DnsServer;
let dir: string;
let clockFile: string;
let first: Posterns;
let second: Posterns;
const processes: PosternProcess[] = [];

before(async () => {
  database = await testDatabase();
  dns = await startDnsServer();
  dir = mkdtempSync(join(tmpdir(), "postern-warming-"));
  clockFile = join(dir, "clock");
  await setClock(0, 0);
  first = await posternSettings(dir, {
    DATABASE_URL: database.url,
    POSTERN_DNS: dns.address,
    POSTERN_TESTING_CLOCK_FILE: clockFile,
  });
  const port = await freePort();
  const http = { POSTERN_HTTP: `127.0.0.1:${port}`, POSTERN_INTERNAL: `127.0.0.1:${await freePort()}` };
  second = { ...first, base_url: `http://127.0.0.1:${port}`, env: { ...first.env, ...http } };
  processes.push(await startPostern(first, ["api"]), await startPostern(second, ["api"]));
});
after(async () => {
  for (const running of processes) await running.stop();
  await dns.stop();
  await database.drop();
  rmSync(dir, { recursive: true, force: true });
});

/** One and the same for the whole file, also when a real midnight passes meanwhile. */
const TOMORROW_MS = (Math.floor(Date.now() / 86_400_000) + 1) * 86_400_000;

/** Ten seconds past this minute of this hour of tomorrow, by the clock of the processes. */
async function setClock(hour: number, minute: number): Promise<void> {
  writeFileSync(clockFile, String((TOMORROW_MS - Date.now()) / 1000 + hour * 3_600 + minute * 60 + 10));
  await new Promise((done) => setTimeout(done, CLOCK_REREAD_MS));
}

/** Sends to both processes at once; returns what each answered. */
function burst(): Promise<Asked[]> {
  const body = { from: "a@burst.example", to: ["b@customer.example"], subject: "s", text_body: "t" };
  return Promise.all(
    Array.from({ length: PARALLEL }, (_unused, n) => ask(n % 2 ? first : second, "POST", "/v1/send", body)),
  );
}

test("over a day of bursts at both processes exactly the limit of each minute, hour and day is accepted", async () => {
  const id = await setUpDomain(first, dns, "burst.example");
  const started = await ask(first, "POST", `/v1/domains/${id}/warming/start`, { phase: "phase_1" });
  assert.deepEqual(started.body.current_limits, { daily_limit: 50, hourly_limit: 5, per_minute_limit: 2 });
  const perHour: number[] = [];
  for (let hour = 0; hour < 11; hour += 1) {
    let ofHour = 0;
    for (let minute = 0; minute < 3; minute += 1) {
      await setClock(hour, minute);
      const answers = await burst();
      const accepted = answers.filter(({ status }) => status === 202).length;
      assert.equal(accepted, hour === 10 ? 0 : minute === 2 ? 1 : 2, `${hour}:${minute}`);
      // The tenth hour's last fills the day too, and the longest window is named.
      const kind = hour === 10 || (hour === 9 && minute === 2) ? "daily" : minute === 2 ? "hourly" : "per_minute";
      const refused = answers.filter(({ status }) => status === 429).map(({ body }) => body.limit_type);
      assert.deepEqual(refused, Array(PARALLEL - accepted).fill(kind), `${hour}:${minute}`);
      ofHour += accepted;
    }
    perHour.push(ofHour);
  }
  assert.deepEqual(perHour, [...Array(10).fill(5), 0]);
  const { body } = await ask(second, "GET", `/v1/domains/${id}/warming`);
  assert.deepEqual([body.today_sent, body.remaining_today, body.remaining_this_hour], [50, 0, 0]);
});
