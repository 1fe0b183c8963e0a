// A sign-in takes as long as a password is hashed; what happens to the password meanwhile counts.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { browserOf, PASSWORD, setUp } from "../../../test/support/people.ts";
import type { Db } from "../../platform/database/db.ts";
import { makeMailedReset } from "../links/links.ts";
import { findPersonByEmail } from "../queries.ts";

const EMAIL = "ann@example.net";
const NEW = "quite another password";

let api: TestApi;
/** What happens once, after a password was found right and before its session is written. */
let meanwhile: (() => Promise<void>) | null = null;

before(async () => {
  api = await testApi({}, (world) => {
    const execute: Db["execute"] = async (sql, values) => {
      const happens = sql.includes("insert into person_session") ? meanwhile : null;
      if (happens) meanwhile = null;
      await happens?.();
      return world.db.execute(sql, values);
    };
    return { ...world, db: { ...world.db, execute } };
  });
  await setUp(api, EMAIL);
});
after(() => api.close());

test("who signs in with a password while it is replaced is not in afterwards", async () => {
  const [person] = await findPersonByEmail(api.world.db, EMAIL);
  const token = (await makeMailedReset(api.world, person!)).split("#")[1];
  const owner = browserOf(api);
  meanwhile = async () => {
    const used = await owner.ask("POST", "/dashboard/api/links/use", { token, password: NEW });
    assert.equal(used.status, 200, JSON.stringify(used.body));
  };
  const thief = browserOf(api);
  const refused = await thief.ask("POST", "/dashboard/api/sign-in", { email: EMAIL, password: PASSWORD });
  assert.deepEqual([refused.status, refused.body.code], [401, "sign_in_failed"]);
  assert.equal((await thief.ask("GET", "/dashboard/api/session")).status, 401);
  assert.equal((await owner.ask("GET", "/dashboard/api/sessions")).body.sessions.length, 1);
});

test("a link for a new password ends when the person sets one in the dashboard", async () => {
  const owner = browserOf(api);
  assert.equal((await owner.ask("POST", "/dashboard/api/sign-in", { email: EMAIL, password: NEW })).status, 200);
  const [person] = await findPersonByEmail(api.world.db, EMAIL);
  const token = (await makeMailedReset(api.world, person!)).split("#")[1];
  assert.equal((await owner.ask("PUT", "/dashboard/api/person/password", { password: PASSWORD })).status, 200);
  const used = await browserOf(api).ask("POST", "/dashboard/api/links/use", { token, password: NEW });
  assert.equal(used.status, 404);
});
