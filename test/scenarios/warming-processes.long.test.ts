// Two api processes on one database under load never let one recipient too many through.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { freePort } from "../support/free-port.ts";
import { type Asked, apiOf } from "../support/postern-process.ts";
import { type Scene, setScene } from "../support/scene.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const PARALLEL = 8;
let s: Scene;
let second: Pick<Scene, "ask">;

before(async () => {
  s = await setScene();
  await setClock(0, 0);
  await s.start(["api"]);
  const place = `127.0.0.1:${await freePort()}`;
  await s.start(["api"], { POSTERN_HTTP: place, POSTERN_INTERNAL: "127.0.0.1:0" });
  second = apiOf({ base_url: `http://${place}`, live_key: s.live_key });
});
after(() => s?.close());

/** One and the same for the whole file, also when a real midnight passes meanwhile. */
const TOMORROW_MS = (Math.floor(Date.now() / 86_400_000) + 1) * 86_400_000;

/** Ten seconds past this minute of this hour of tomorrow, by the clock of the processes. */
function setClock(hour: number, minute: number): Promise<void> {
  return s.moveClock(TOMORROW_MS - Date.now() + hour * 3_600_000 + minute * 60_000 + 10_000);
}

/** Sends to both processes at once; returns what each answered. */
function burst(): Promise<Asked[]> {
  const body = { from: "a@burst.example", to: ["b@customer.example"], subject: "s", text_body: "t" };
  return Promise.all(
    Array.from({ length: PARALLEL }, (_unused, n) => (n % 2 ? s : second).ask("POST", "/v1/send", body)),
  );
}

/** Of the answers that are neither. */
function said(answers: readonly Asked[]): string {
  return JSON.stringify(answers.filter(({ status }) => status !== 202 && status !== 429));
}

test("over a day of bursts at both processes exactly the limit of each minute, hour and day is accepted", async () => {
  const { id } = await addVerifiedDomain(s, s.dns, "burst.example");
  const started = await s.ask("POST", `/v1/domains/${id}/warming/start`, { phase: "phase_1" });
  assert.deepEqual(started.body.current_limits, { daily_limit: 50, hourly_limit: 5, per_minute_limit: 10 });
  const perHour: number[] = [];
  for (let hour = 0; hour < 11; hour += 1) {
    let ofHour = 0;
    for (let minute = 0; minute < 3; minute += 1) {
      await setClock(hour, minute);
      const answers = await burst();
      const accepted = answers.filter(({ status }) => status === 202).length;
      assert.equal(accepted, hour === 10 || minute > 0 ? 0 : 5, `${hour}:${minute}`);
      // The tenth hour fills the day too, and the longest window is named.
      const kind = hour >= 9 ? "daily" : "hourly";
      const refused = answers.filter(({ status }) => status === 429).map(({ body }) => body.limit_type);
      assert.deepEqual(refused, Array(PARALLEL - accepted).fill(kind), `${hour}:${minute} ${said(answers)}`);
      ofHour += accepted;
    }
    perHour.push(ofHour);
  }
  assert.deepEqual(perHour, [...Array(10).fill(5), 0]);
  const { body } = await second.ask("GET", `/v1/domains/${id}/warming`);
  assert.deepEqual([body.today_sent, body.remaining_today, body.remaining_this_hour], [50, 0, 0]);
});
