// Other providers' suppression lists through HTTP: preview, commit, commit again, and what is on the list then.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { commitImports } from "../../src/suppressions/background.ts";
import { PROVIDERS } from "../../src/suppressions/import/formats.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { caseFiles, noteAbsent, readSide } from "./case-files.ts";
import type { Corpus } from "./tally.ts";

type Case = {
  file: string;
  provider: string;
  valid_rows: [email: string, reason: string, remark: string][];
  invalid_or_skipped_rows: unknown[][];
};

const PAGE_MAX = 100;

export const suppressionCsv: Corpus = {
  name: "suppression-csv",
  slow: true,
  async run(dir, tally) {
    const expected = readSide<Case[]>(tally, join(dir, "expected.json")) ?? [];
    const files = caseFiles(dir);
    const known = new Map(expected.map((one) => [one.file, one]));
    noteAbsent(tally, files, known.keys());
    const api = await testApi();
    try {
      for (const file of files) {
        await tally.attempt(file, async () => {
          const given = known.get(file);
          const got = await importFile(api, file, readFileSync(join(dir, file)));
          // Nobody says what is in it: what it previews as valid is what is on the list then.
          if (given) tally.judge(file, wanted(given), got);
          else tally.judge(file, [got.valid_rows, 409], [got.committed.length, got.commit_twice]);
        });
      }
    } finally {
      await api.close();
    }
  },
};

function wanted({ provider, valid_rows, invalid_or_skipped_rows }: Case): Imported {
  return {
    // "generic", and whom we have no name for.
    provider: PROVIDERS.find((known) => known === provider) ?? "custom",
    valid_rows: valid_rows.length,
    other_rows: invalid_or_skipped_rows.length,
    committed: valid_rows.map(([email, reason]) => `${email.toLowerCase()} ${reason}`).sort(),
    commit_twice: 409,
  };
}

type Imported = {
  provider: string;
  valid_rows: number;
  other_rows: number;
  committed: string[];
  commit_twice: number;
};

async function importFile(api: TestApi, name: string, content: Buffer): Promise<Imported> {
  const { live_key: key } = await api.organization();
  const boundary = "corpus-boundary";
  const filename = name.replace(/["\r\n]/g, "_");
  const head = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${filename}"\r\nContent-Type: text/csv\r\n\r\n`;
  const body = Buffer.concat([Buffer.from(head), content, Buffer.from(`\r\n--${boundary}--\r\n`)]);
  const headers = { "content-type": `multipart/form-data; boundary=${boundary}` };
  const preview = await api.ask("POST", "/v1/imports/suppressions/preview", body, { key, headers });
  if (preview.status !== 201) throw new Error(`preview: ${preview.status} ${JSON.stringify(preview.body)}`);
  const { job } = preview.body;
  await api.ask("POST", `/v1/imports/suppressions/jobs/${job.id}/commit`, undefined, { key });
  const again = await api.ask("POST", `/v1/imports/suppressions/jobs/${job.id}/commit`, undefined, { key });
  await commitImports(api.world);
  return {
    provider: job.provider,
    valid_rows: job.valid_rows,
    other_rows: job.invalid_rows + job.duplicate_rows,
    committed: await allSuppressed(api, key),
    commit_twice: again.status,
  };
}

async function allSuppressed(api: TestApi, key: string): Promise<string[]> {
  const all: string[] = [];
  for (;;) {
    const { body } = await api.ask("GET", `/v1/suppressions?limit=${PAGE_MAX}&offset=${all.length}`, undefined, {
      key,
    });
    const page = body.suppressions as { email: string; reason: string }[];
    all.push(...page.map(({ email, reason }) => `${email} ${reason}`));
    if (page.length < PAGE_MAX) return all.sort();
  }
}
