// `npx node test/clients/write-description.ts`: writes clients/openapi.json, the snapshot that the libraries are made from,
// as this tree's server says it. `node clients/generate/run.ts` then writes the libraries.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { testApi } from "../support/api.ts";

const FILE = join(import.meta.dirname, "../../clients/openapi.json");

const api = await testApi();
try {
  const { servers: _here, ...said } = (await api.ask("GET", "/openapi.json")).body as Record<string, unknown>;
  writeFileSync(FILE, `${JSON.stringify(said, null, 1)}\n`);
  console.log(`written: ${FILE}`);
} finally {
  await api.close();
}
