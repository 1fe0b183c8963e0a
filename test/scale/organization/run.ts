// npm run scale -- organization [--mails n --json]: how long an organization with so many mails is held still while it moves to another
// cell. Two databases of the PostgreSQL of the tests, which does not wait for the disk. Exit code 0: passed; 1: failed; 2: wrong arguments. What is counted: ../README.md.
import { execFile } from "node:child_process";
import { join, resolve } from "node:path";
import { BEGIN_AS_SYSTEM } from "../../../src/platform/database/session-settings.ts";
import { inheritedEnv } from "../../support/inherited-env.ts";
import { readOptions, wholeNumber } from "../../support/options.ts";
import { type Scene, setScene } from "../../support/scene.ts";
import { connectToRows } from "../../support/table-digests.ts";

const PROGRAM = resolve(import.meta.dirname, "../../../src/main.ts");
const USE = "npm run scale -- organization [--mails n --json]";
/** For what has no secret: both cells lie in a folder that goes with them. */
const ENV = { POSTERN_BACKUP_PASSPHRASE: "a passphrase for a trial" };

function readArguments() {
  const options = { mails: { type: "string", default: "200000" }, json: { type: "boolean", default: false } } as const;
  const { values } = readOptions({ allowPositionals: true, options }, USE);
  const mails = wholeNumber("mails", values.mails, { least: 1, most: 9_999_999 }, USE);
  return { mails, json: values.json };
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(130));

const { mails, json } = readArguments();
const [from, to] = [await setScene({ env: ENV }), await setScene({ env: ENV })];
let ok = false;
try {
  const line = { mails, ...(await moveOne()) };
  ok = line.rows >= 5 * mails && line.imported === line.rows;
  for (const [figure, value] of Object.entries(line)) console.log(`  ${figure.padEnd(24)} ${value}`);
  console.log(ok ? "passed" : "FAILED");
  if (json) console.log(JSON.stringify({ ...line, ok }));
} catch (error) {
  console.error(error);
} finally {
  await from.close();
  await to.close();
}
process.exit(ok ? 0 : 1);

async function moveOne() {
  await from.start();
  console.log(`an organization with ${mails} mails`);
  const id = await fill();
  const file = join(from.dir, "moving");
  const exported = await postern(from, "export", id, file);
  const imported = await postern(to, "import", file);
  await from.moveClock(61_000);
  const removed = await postern(from, "remove", id);
  return {
    ...{ rows: exported.answer.rows, imported: imported.answer.rows, file_bytes: exported.answer.stored_bytes },
    ...{ export_s: exported.seconds, import_s: imported.seconds, remove_s: removed.seconds },
    held_s: Math.round(10 * (exported.seconds + imported.seconds)) / 10,
  };
}

type Ended = { seconds: number; answer: { rows: number; stored_bytes: number } };

function postern(scene: Scene, ...words: string[]): Promise<Ended> {
  const startedAt = performance.now();
  const args = [PROGRAM, "organizations", ...words, "--json"];
  return new Promise((done, fail) => {
    execFile(process.execPath, args, { env: { ...inheritedEnv(), ...scene.env } }, (error, out, err) => {
      const seconds = Math.round((performance.now() - startedAt) / 100) / 10;
      if (error) fail(new Error(err));
      else done({ seconds, answer: JSON.parse(out.trim().split("\n").at(-1) as string) });
    });
  });
}

/** Of each mail: its row, its recipient, 4 KB of text and two events. */
async function fill(): Promise<string> {
  const client = await connectToRows(String(from.env.DATABASE_URL));
  await client.query(BEGIN_AS_SYSTEM);
  const { rows } = await client.query<{ id: string }>("select id from organization");
  const id = rows[0]?.id as string;
  const numbered = (number: string) =>
    `(substr(uuid_floor(now())::text, 1, 24) || lpad(to_hex(${number}), 12, '0'))::uuid`;
  const all = `from generate_series(1, ${mails}) as n`;
  for (const text of [
    `insert into message (org_id, id, environment, domain_id, message_id, from_address, from_header, subject, status, size, recipient_count, created_at)
     select $1, ${numbered("n")}, 'live', $1, n || '@a.example', 'a@a.example', 'a@a.example', 'Mail ' || n, 'delivered', 4000, 1, now() ${all}`,
    `insert into recipient (org_id, message_id, position, email, kind, status)
     select $1, ${numbered("n")}, 0, 'r' || n || '@r.example', 'to', 'delivered' ${all}`,
    `insert into message_body (org_id, id, mime)
     select $1, ${numbered("n")}, convert_to(repeat(md5(n::text), 125), 'UTF8') ${all}`,
    `insert into event (org_id, id, message_id, event_type, at)
     select $1, ${numbered("n * 2 + k")}, ${numbered("n")}, (array['email.sent', 'email.delivered'])[k + 1], now() ${all}, generate_series(0, 1) as k`,
  ]) {
    await client.query(text.replaceAll("$1", `'${id}'::uuid`));
  }
  await client.query("commit");
  await client.end();
  return id;
}
