// Which of the addresses that a mail names are other aliases of the mailbox: alone, and among thousands.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import type { World } from "../../platform/world.ts";
import { addressFinder, contextFinder } from "../lookups.ts";
import { siblingFinder } from "./siblings.ts";

let api: TestApi;
before(async () => {
  api = await testApi();
});
after(() => api.close());

async function make(local_part: string, forward_to: string) {
  const { status, body } = await api.ask("POST", "/v1/masked/aliases", { local_part, forward_to: [forward_to] });
  assert.equal(status, 201, JSON.stringify(body));
  return body.alias as { id: string; email: string; domain: string };
}

/** The finder of a process of its own, and how many statements it has used. */
async function finderFor(aliasId: string) {
  let statements = 0;
  const query: World["db"]["query"] = (...args) => {
    statements += 1;
    return api.world.db.query(...args);
  };
  const world = { ...api.world, db: { ...api.world.db, query } };
  const find = contextFinder(world);
  const context = await find(api.org_id, aliasId);
  assert.ok(context);
  const findSiblings = siblingFinder(world, addressFinder(world), find);
  return {
    siblings: async (named: string[]) => (await findSiblings(context, named)).sort(),
    statements: () => statements,
  };
}

test("an alias is found among nine thousand addresses as it is alone, with few statements", async () => {
  const own = await make("first-one", "me@mailbox.example");
  const other = await make("second", "me@mailbox.example");
  const deleted = await make("third", "me@mailbox.example");
  await api.ask("DELETE", `/v1/masked/aliases/${deleted.id}`);
  const stranger = await make("fourth", "somebody@mailbox.example");
  const named = [
    own.email,
    stranger.email,
    `to-${other.email}`,
    `SEE.${deleted.email}`,
    `xx${other.email}`,
    `second@elsewhere.example`,
  ];
  const few = await finderFor(own.id);
  const alone = await few.siblings(named);
  assert.deepEqual(alone, [deleted.email, other.email].sort());
  const many = await finderFor(own.id);
  const noise = Array.from({ length: 9_000 }, (_, n) => `who.is-it.this-${n}@${own.domain}`);
  const before = many.statements();
  assert.deepEqual(await many.siblings([...noise, ...named]), alone);
  assert.ok(many.statements() - before <= 4, `${many.statements() - before} statements`);
});
