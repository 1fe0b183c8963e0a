import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { until } from "../../test/support/until.ts";
import { startSubmitting } from "../app.ts";
import { hangUp, loginCommand, securedClient } from "./client.fixture.ts";

let api: TestApi;
let other: Awaited<ReturnType<TestApi["organization"]>>;

before(async () => {
  api = await testApi({ POSTERN_SUBMISSION: "127.0.0.1:0" });
  other = await api.organization();
});

after(async () => {
  hangUp();
  await api?.close();
});

describe("guessing keys at submission", () => {
  it("is answered slowly after five failures of one client; a right key from there passes all the same", async () => {
    const own = await startSubmitting(api.world, api.engine);
    const slowed = async () => {
      const counters = await api.world.metrics.text();
      return Number(/^postern_submission_logins_total\{result="slowed"\} (\d+)$/m.exec(counters)?.[1] ?? 0);
    };
    try {
      const wrong = ["", "x", api.live_key.slice(0, -1), `${api.live_key}0`, api.live_key.toUpperCase()];
      const answers: string[] = [];
      for (const key of wrong) {
        const smtp = await securedClient(own.port);
        answers.push((await smtp.ask(loginCommand(key))).text.slice(0, 9));
        smtp.destroy();
      }
      assert.deepEqual(answers, Array(5).fill("535 5.7.8"));
      assert.equal(await slowed(), 0);
      const stale = await Promise.all(Array.from({ length: 5 }, () => securedClient(own.port)));
      const late = stale.map((smtp) => smtp.ask(loginCommand("svc_live_of_last_year_00000000")));
      await until("five wrong logins that wait", async () => (await slowed()) === 5);
      for (const key of [api.live_key, api.test_key, other.live_key]) {
        const smtp = await securedClient(own.port);
        assert.equal((await smtp.ask(loginCommand(key))).code, 235);
        smtp.destroy();
      }
      for (const { text } of await Promise.all(late)) assert.match(text, /^535 5\.7\.8 /);
    } finally {
      await own.stop();
    }
  });

  it("does not work with another user name", async () => {
    const own = await startSubmitting(api.world, api.engine);
    try {
      const smtp = await securedClient(own.port);
      assert.match((await smtp.ask(loginCommand(api.live_key, "root"))).text, /^535 5\.7\.8 /);
      assert.match((await smtp.ask(loginCommand(api.live_key, ""))).text, /^535 5\.7\.8 /);
      assert.equal((await smtp.ask(loginCommand(api.live_key))).code, 235);
    } finally {
      await own.stop();
    }
  });
});
