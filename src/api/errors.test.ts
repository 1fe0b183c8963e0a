import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import Fastify, { type FastifyInstance } from "fastify";
import { type TestDatabase, testDatabase } from "../../test/support/database.ts";
import { type Db, openDb } from "../platform/database/db.ts";
import { createLog } from "../platform/process/log.ts";
import { answerError } from "./errors.ts";

let database: TestDatabase;
let db: Db;
let app: FastifyInstance;

before(async () => {
  database = await testDatabase();
  db = openDb(database.url, { onError: () => undefined });
  app = Fastify();
  app.setErrorHandler((error, request, reply) =>
    answerError(createLog({ level: "silent", role: "test" }), error, request, reply),
  );
});

after(async () => {
  await app?.close();
  await db?.close();
  await database?.drop();
});

test("of two requests that wait for each other in the database one is done, and the other may be tried again", async () => {
  const both = { held: 0, proceed: Promise.withResolvers<void>() };
  app.get("/locks/:first/:second", async (request) => {
    const { first, second } = request.params as { first: string; second: string };
    await db.transaction(async (tx) => {
      await tx.query("select pg_advisory_xact_lock($1)", [first]);
      both.held += 1;
      if (both.held === 2) both.proceed.resolve();
      await both.proceed.promise;
      await tx.query("select pg_advisory_xact_lock($1)", [second]);
    });
    return {};
  });
  const answers = await Promise.all(["/locks/1/2", "/locks/2/1"].map((url) => app.inject(url)));
  assert.deepEqual(answers.map(({ statusCode }) => statusCode).toSorted(), [200, 503]);
  const refused = answers.find(({ statusCode }) => statusCode === 503);
  assert.equal(refused?.json().code, "unavailable");
  assert.equal(refused?.headers["retry-after"], "1");
});
