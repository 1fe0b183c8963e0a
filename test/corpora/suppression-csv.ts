// Other providers' suppression lists through HTTP: preview, commit, commit again, and what is on the list then.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { commitImports } from "../../src/suppressions/background.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { type Corpus, createTally } from "./tally.ts";

type Case = {
  file: string;
  provider: string;
  valid_rows: [email: string, reason: string, remark: string][];
  invalid_or_skipped_rows: unknown[][];
};

export const suppressionCsv: Corpus = {
  name: "suppression-csv",
  async run(dir) {
    const tally = createTally();
    const api = await testApi();
    try {
      for (const expected of JSON.parse(readFileSync(join(dir, "expected.json"), "utf8")) as Case[]) {
        const content = readFileSync(join(dir, expected.file));
        tally.judge(expected.file, wanted(expected), await importFile(api, expected.file, content));
      }
    } finally {
      await api.close();
    }
    return tally;
  },
};

function wanted({ valid_rows, invalid_or_skipped_rows }: Case) {
  return {
    valid_rows: valid_rows.length,
    other_rows: invalid_or_skipped_rows.length,
    committed: valid_rows.map(([email, reason]) => `${email.toLowerCase()} ${reason}`).sort(),
    commit_twice: 409,
  };
}

async function importFile(api: TestApi, name: string, content: Buffer) {
  const { live_key: key } = await api.organization();
  const boundary = "corpus-boundary";
  const head = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\nContent-Type: text/csv\r\n\r\n`;
  const body = Buffer.concat([Buffer.from(head), content, Buffer.from(`\r\n--${boundary}--\r\n`)]);
  const headers = { "content-type": `multipart/form-data; boundary=${boundary}` };
  const preview = await api.ask("POST", "/v1/imports/suppressions/preview", body, { key, headers });
  const { job } = preview.body;
  if (preview.status !== 201) return { status: preview.status, body: preview.body };
  await api.ask("POST", `/v1/imports/suppressions/jobs/${job.id}/commit`, undefined, { key });
  const again = await api.ask("POST", `/v1/imports/suppressions/jobs/${job.id}/commit`, undefined, { key });
  await commitImports(api.world);
  const { body: list } = await api.ask("GET", "/v1/suppressions?limit=100", undefined, { key });
  return {
    valid_rows: job.valid_rows,
    other_rows: job.invalid_rows + job.duplicate_rows,
    committed: list.suppressions.map((row: { email: string; reason: string }) => `${row.email} ${row.reason}`).sort(),
    commit_twice: again.status,
  };
}
