// A list of 1,000,000 rows as SendGrid exports it, previewed and committed by a whole Postern in one process: rows a second
// and the most memory that the process ever had (VmHWM, so Linux only), for each way to send the list. Its progress must
// be seen in the job, and a mail to one of its addresses must be refused afterwards. PostgreSQL's memory is not in it.
import { gzipSync } from "node:zlib";
import { ask, type Posterns } from "../test/support/postern-process.ts";
import { residentMib } from "../test/support/resident.ts";
import { type BenchResult, conditions, round, setStage } from "./support/bench.ts";

const BOUNDARY = "postern-bench";
const POLL_MS = 200;
const COMMIT_MS_MAX = 600_000;

type Way = { makeRow(index: number): string; heading: string; address(index: number): string; pack(csv: string): Body };
type Body = { type: string; bytes: Buffer };

const shortAddress = (index: number) => `u${index}@a.io`;
const longAddress = (index: number) => `customer.number.${index}@mailbox-provider.example`;

const WAYS: Record<string, Way> = {
  // 25 MiB is what a file may have: a million rows of 24 bytes just fit.
  file: {
    heading: "email,created",
    makeRow: (index) => `${shortAddress(index)},1731571200`,
    address: shortAddress,
    pack: (csv) => multipart("suppression_unsubscribes.csv", Buffer.from(csv)),
  },
  gzip: {
    heading: "status,reason,email,created",
    makeRow: (index) =>
      `5.1.1,"550 5.1.1 The email account that you tried to reach does not exist, see ""help"" ${index}",${longAddress(index)},1731571200`,
    address: longAddress,
    pack: (csv) => multipart("suppression_bounces.csv.gz", gzipSync(csv, { level: 1 })),
  },
  json: {
    heading: "email,created",
    makeRow: (index) => `user.${index}@mail.example,1731571200`,
    address: (index) => `user.${index}@mail.example`,
    pack: (csv) => ({ type: "application/json", bytes: Buffer.from(JSON.stringify({ csv, provider: "sendgrid" })) }),
  },
};

/** Runs the benchmark with `rows` rows. */
export async function benchImport({ rows }: { rows: number } = { rows: 1_000_000 }): Promise<BenchResult> {
  const ours: Record<string, number> = {};
  for (const [name, way] of Object.entries(WAYS)) {
    for (const [figure, value] of Object.entries(await measure(way, rows))) ours[`${name}_${figure}`] = value;
  }
  return { name: "import", conditions: conditions({ rows }), ours, peers: {}, ratio: {} };
}

async function measure(way: Way, rows: number): Promise<Record<string, number>> {
  const { bytes, type } = way.pack(listOf(way, rows));
  const stage = await setStage();
  try {
    const pid = stage.processes[0]?.pid ?? 0;
    const idle = peakMib(pid);
    const startedAt = performance.now();
    const job = await preview(stage.settings, { type, bytes });
    if (job.valid_rows !== rows) throw new Error(`${job.valid_rows} of ${rows} rows are valid`);
    const previewedAt = performance.now();
    const afterPreview = peakMib(pid);
    const steps = await commit(stage.settings, job.id, rows);
    const committedAt = performance.now();
    await refuseAfterwards(stage.settings, stage.domain, way.address(Math.floor(rows / 2)));
    return {
      upload_mib: round(bytes.length / 2 ** 20, 1),
      preview_rows_per_s: round(rows / ((previewedAt - startedAt) / 1000)),
      commit_rows_per_s: round(rows / ((committedAt - previewedAt) / 1000)),
      progress_steps_seen: steps,
      idle_rss_mib: idle,
      preview_peak_rss_mib: afterPreview,
      peak_rss_mib: peakMib(pid),
    };
  } finally {
    await stage.close();
  }
}

function listOf(way: Way, rows: number): string {
  const parts = [way.heading];
  for (let index = 0; index < rows; index += 1) parts.push(way.makeRow(index));
  return `${parts.join("\n")}\n`;
}

function multipart(filename: string, content: Buffer): Body {
  const head = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="${filename}"\r\n\r\n`;
  return {
    type: `multipart/form-data; boundary=${BOUNDARY}`,
    bytes: Buffer.concat([Buffer.from(head), content, Buffer.from(`\r\n--${BOUNDARY}--\r\n`)]),
  };
}

type Job = { id: string; status: string; valid_rows: number; committed_rows: number };

async function preview(settings: Posterns, { type, bytes }: Body): Promise<Job> {
  const answer = await fetch(`${settings.base_url}/v1/imports/suppressions/preview`, {
    method: "POST",
    headers: { authorization: `Bearer ${settings.live_key}`, "content-type": type },
    body: new Uint8Array(bytes),
  });
  const body = (await answer.json()) as { job: Job };
  // A large list is read after the answer.
  if (answer.status === 202) return whenRead(settings, body.job.id);
  if (answer.status !== 201) throw new Error(`the preview answers ${answer.status}: ${JSON.stringify(body)}`);
  return body.job;
}

async function whenRead(settings: Posterns, id: string): Promise<Job> {
  for (;;) {
    const { body } = await ask(settings, "GET", `/v1/imports/suppressions/jobs/${id}`);
    const { job } = body as unknown as { job: Job };
    if (job.status === "previewed") return job;
    if (job.status !== "reading") throw new Error(`the preview ended as ${JSON.stringify(job)}`);
    await new Promise((done) => setTimeout(done, POLL_MS));
  }
}

/** Commits and follows the job to its end; how many different counts of committed rows it showed on the way. */
async function commit(settings: Posterns, id: string, rows: number): Promise<number> {
  const path = `/v1/imports/suppressions/jobs/${id}`;
  const started = await ask(settings, "POST", `${path}/commit`);
  if (started.status !== 202) throw new Error(`the commit answers ${started.status}`);
  const seen = new Set<number>();
  const until = performance.now() + COMMIT_MS_MAX;
  while (performance.now() < until) {
    const job = (await ask(settings, "GET", path)).body.job as unknown as Job;
    seen.add(job.committed_rows);
    if (job.status === "committed" && job.committed_rows === rows) return seen.size;
    if (job.status !== "committing") throw new Error(`the job is ${job.status} with ${job.committed_rows} rows`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  throw new Error("the commit has not ended");
}

async function refuseAfterwards(settings: Posterns, domain: string, address: string): Promise<void> {
  const mail = { from: `a@${domain}`, to: [address], subject: "x", text_body: "x" };
  const { status, body } = await ask(settings, "POST", "/v1/send", mail);
  if (status !== 422) throw new Error(`a mail to ${address} answers ${status}: ${JSON.stringify(body)}`);
}

/** The most memory the process ever had resident; 0 where the system does not tell. */
function peakMib(pid: number): number {
  return round(residentMib(pid, "VmHWM") ?? 0);
}
