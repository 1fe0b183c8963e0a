// Rewrites migrations/schema.sql from a freshly migrated database: run it after changing migrations/, and look at the
// diff. `node test/support/write-schema.ts`
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { dumpSchema } from "../../src/platform/database/schema-dump.ts";
import { testDatabase } from "./database.ts";

const FILE = join(resolve(import.meta.dirname, "../.."), "migrations/schema.sql");

const database = await testDatabase();
try {
  writeFileSync(FILE, await dumpSchema(database.url));
  console.log(`written: ${FILE}`);
} finally {
  await database.drop();
}
