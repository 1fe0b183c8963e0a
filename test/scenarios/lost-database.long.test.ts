// A data folder whose database is not there, and a database that is not the folder's: the start is refused before anything
// answers for domains that it does not know; an installation without domains defers mail.
import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { plainDatabase, type TestDatabase } from "../support/database.ts";
import { rawSmtp } from "../support/raw-smtp.ts";
import { type Scene, setScene } from "../support/scene.ts";

let s: Scene;
let empty: TestDatabase;

before(async () => {
  s = await setScene({ embedded: true });
  empty = await plainDatabase();
});
after(async () => {
  await s?.close();
  await empty?.drop();
});

test("mail is deferred while no domain is there", async () => {
  const running = await s.start(["api", "mx"]);
  const smtp = await rawSmtp(s.mx_port);
  const content = "Subject: x\r\n\r\nx\r\n";
  const { code, text } = await smtp.deliver({ from: "a@b.example", to: ["c@served.example"], content });
  assert.deepEqual([code, /4\.3\.5 no domain is set up here yet/.test(text)], [451, true], text);
  smtp.destroy();
  await running.stop();
});

test("a start without the folder's database, or with an empty one, is refused and makes nothing", async () => {
  const place = join(s.dir, "data/postgres");
  renameSync(place, `${place}-unmounted`);
  await assert.rejects(
    s.start(["api", "mx"]),
    /the database of .*data is not there, but the id of it: is its volume mounted/,
  );
  assert.equal(existsSync(place), false);
  await assert.rejects(
    s.start(["api"], { DATABASE_URL: empty.url }),
    /the database is empty, but the data folder .* holds the id/,
  );
  renameSync(`${place}-unmounted`, place);
  const running = await s.start(["api", "mx"]);
  await running.stop();
});

test("a folder that holds a master key alone does not begin as new, with neither kind of database", async () => {
  const place = join(s.dir, "data");
  const key = join(s.dir, "data-unmounted/master.key");
  renameSync(place, `${place}-unmounted`);
  mkdirSync(place);
  copyFileSync(key, join(place, "master.key"));
  await assert.rejects(s.start(["api", "mx"]), /data is not there, but the master key of it: is its volume mounted/);
  await assert.rejects(
    s.start(["api", "mx"], { DATABASE_URL: empty.url }),
    /the database is empty, but the data folder .* holds the master key of another one/,
  );
  assert.deepEqual(readdirSync(place), ["master.key"]);
  rmSync(place, { recursive: true });
  renameSync(`${place}-unmounted`, place);
  await (await s.start(["api"])).stop();
});
