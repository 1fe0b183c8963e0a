// `npx node test/clients/write-description.ts`: writes clients/openapi.json, the snapshot that the libraries are made from, and
// dashboard/api/generated/people.json, the dashboard's own, as this tree's server says them. `node clients/generate/run.ts` then writes
// the libraries and the dashboard's types.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { testApi } from "../support/api.ts";

const ROOT = join(import.meta.dirname, "../..");

const api = await testApi();
try {
  await write("/openapi.json", "clients/openapi.json");
  await write("/dashboard/api/openapi.json", "dashboard/api/generated/people.json");
} finally {
  await api.close();
}

async function write(path: string, file: string): Promise<void> {
  const { servers: _here, ...said } = (await api.ask("GET", path)).body as Record<string, unknown>;
  writeFileSync(join(ROOT, file), `${JSON.stringify(said, null, 1)}\n`);
  console.log(`written: ${file}`);
}
