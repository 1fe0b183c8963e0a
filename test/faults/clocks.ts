// `clocks`: the clock of the processes, that of the database, and both are set forward and back by a second to 400 days and
// back again. After each step every endpoint and role is asked for something and must do it, within the time that the
// figures below name; what was begun before the step must come to its end as well. Not here: mail that is scheduled.

import { databaseClock } from "../support/database-clock.ts";
import { ask } from "../support/postern-process.ts";
import { rawSmtp } from "../support/raw-smtp.ts";
import { type Scene, setScene } from "../support/scene.ts";
import { receiveAt } from "../support/stories.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";
import type { ScenarioOptions } from "./round.ts";

const DAY_S = 86_400;
const SIZES_S = [1, 60, 3_600, DAY_S, 8 * DAY_S, 31 * DAY_S, 400 * DAY_S];

export type Which = "processes" | "database" | "both";

export type Step = { which: Which; seconds: number };

export type ClocksVerdict = {
  acknowledged: number;
  lost: number;
  duplicates: number;
  flagged: number;
  steps: number;
  /** What was asked for after a step and did not come. */
  stuck: number;
  status_500: number;
  /** Each of these, in words. */
  troubles: string[];
  ok: boolean;
};

/** Every part of the service is to answer within this, the work that a rate delays included. */
const WITHIN_MS = 60_000;
const FOLLOWED_MS = 800;
const DOMAIN = "clocks.example";
const MAILBOX = `orders@${DOMAIN}`;

/** Forward and back again, then back and forward again, in every size. */
function allSteps(sizes: readonly number[] = SIZES_S): Step[] {
  return (["processes", "database", "both"] as const).flatMap((which) =>
    sizes.flatMap((size) => [size, 0, -size, 0].map((seconds) => ({ which, seconds }))),
  );
}

/** Plays every step, `rounds` times. */
export async function runClocks({ rounds, say }: ScenarioOptions): Promise<ClocksVerdict> {
  const steps = Array.from({ length: rounds }, () => allSteps()).flat();
  return playSteps(steps, say);
}

/** Sets the clocks step by step over one service in one process. */
export async function playSteps(steps: readonly Step[], say?: (text: string) => void): Promise<ClocksVerdict> {
  const scene = await setScene();
  const clock = await databaseClock(await scene.admin());
  const found: Findings = { sent: [], statuses: new Map(), troubles: [] };
  try {
    await scene.start();
    await furnish(scene);
    await lookAtAll(scene, found, "before");
    for (const [at, step] of steps.entries()) {
      if (step.which !== "database") await scene.moveClock(step.seconds * 1000);
      if (step.which !== "processes") await clock.move(step.seconds * 1000);
      // What is begun before they follow is as old as the step at once: it ends by its own deadline.
      await untilFollowed(scene, found, step.seconds * (step.which === "both" ? 2 : 1));
      const name = `step ${at + 1} of ${steps.length}, ${step.which} at ${step.seconds} s`;
      const startedAt = performance.now();
      const before = found.troubles.length;
      await lookAtAll(scene, found, name);
      const words = found.troubles.slice(before).join("; ") || "all alive";
      say?.(`${name}: ${words}, ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
    }
    return verdictOf(scene, found, steps.length);
  } finally {
    await scene.close();
  }
}

/** The database's clock is followed within ten seconds; a job tells when it was made. */
async function untilFollowed(scene: Scene, found: Findings, aheadS: number): Promise<void> {
  const list = { csv: "email\nx@recipient.example\n" };
  await until(
    "the processes go by the clock that was set",
    async () => {
      const { body } = await asked(scene, found, "POST", "/v1/imports/suppressions/preview", list, [201]);
      const { expires_at } = body.job as unknown as { expires_at: string };
      const offMs = Date.parse(expires_at) - DAY_S * 1000 - Date.now() - aheadS * 1000;
      if (Math.abs(offMs) < FOLLOWED_MS) return true;
      await new Promise((done) => setTimeout(done, FOLLOWED_MS));
      return false;
    },
    WITHIN_MS,
  ).catch((error) => found.troubles.push(`clock at ${aheadS} s: ${(error as Error).message}`));
}

type Findings = { sent: { id: string; subject: string }[]; statuses: Map<number, number>; troubles: string[] };

function verdictOf(scene: Scene, found: Findings, steps: number): ClocksVerdict {
  const copies = Map.groupBy(
    scene.sink.messages,
    ({ bytes }) => /^Subject: (.*)\r$/m.exec(bytes.toString())?.[1] ?? "",
  );
  const counts = found.sent.map(({ subject }) => copies.get(subject)?.length ?? 0);
  const lost = counts.filter((count) => count === 0).length;
  const duplicates = counts.reduce((sum, count) => sum + Math.max(0, count - 1), 0);
  const status_500 = [...found.statuses].reduce((sum, [status, count]) => sum + (status >= 500 ? count : 0), 0);
  const stuck = found.troubles.length;
  return {
    acknowledged: found.sent.length,
    lost,
    duplicates,
    flagged: 0,
    steps,
    stuck,
    status_500,
    troubles: found.troubles,
    ok: lost === 0 && duplicates === 0 && stuck === 0 && status_500 === 0,
  };
}

async function furnish(scene: Scene): Promise<void> {
  receiveAt(scene.dns, "recipient.example");
  const { id: domain_id } = await addVerifiedDomain(scene, scene.dns, DOMAIN, { type: "both" });
  for (const [path, body] of [
    ["/v1/aliases", { domain_id, local_part: MAILBOX.split("@")[0] }],
    ["/v1/webhooks", { url: `${scene.receiver.url}/hook`, domain_id, events: ["email.delivered", "email.received"] }],
    ["/v1/templates", { name: "Hello", slug: "hello", subject: "Hello", text_body: "Hello {{name}}" }],
  ] as const) {
    const made = await scene.ask("POST", path, body);
    if (made.status !== 201) throw new Error(`${path}: ${made.status} ${JSON.stringify(made.body)}`);
  }
}

const READ = [
  "emails",
  "inbound-emails",
  "webhook-deliveries",
  "domains",
  "suppressions",
  "templates",
  "aliases",
  "webhooks",
  "api-keys",
  "masked/aliases",
  "masked/destinations",
];
const READ_OF_DOMAIN = [
  "dns",
  "dkim",
  "stats",
  "stats/daily",
  "stats/hourly",
  "stats/isp",
  "warming",
  "warming/history",
  "dmarc/summary",
  "dmarc/daily",
  "dmarc/reports",
];

/** All at the same time: what a step does to one does not hide behind what it does to another. */
async function lookAtAll(scene: Scene, found: Findings, name: string): Promise<void> {
  // By the clock it may have been silent for a year: such a domain begins to warm up again, which is as it should be.
  const start = `/v1/domains/${await findDomain(scene, found)}/warming/start`;
  await asked(scene, found, "POST", start, { phase: "warmed" }, [200, 201]);
  const words = (error: unknown) => (error as Error).message.slice(0, 300);
  const tries = Object.entries({
    api: () => sendOverApi(scene, found, name),
    submission: () => submit(scene, found, name),
    mx: () => takeIn(scene, name),
    clock: () => commitImport(scene, found),
    reads: () => readAll(scene, found),
    domains: () => verifyDomain(scene, found),
  }).map(async ([part, work]) => {
    await work().catch((error) => found.troubles.push(`${name}: ${part}: ${words(error)}`));
  });
  await Promise.all(tries);
}

async function readAll(scene: Scene, found: Findings): Promise<void> {
  const get = (path: string) => asked(scene, found, "GET", `/v1/${path}`, undefined, [200]);
  const domain = await findDomain(scene, found);
  await Promise.all([...READ, ...READ_OF_DOMAIN.map((path) => `domains/${domain}/${path}`)].map(get));
}

async function findDomain(scene: Scene, found: Findings): Promise<string> {
  const { body } = await asked(scene, found, "GET", "/v1/domains", undefined, [200]);
  const [domain] = body.domains as unknown as { id: string }[];
  return domain?.id as string;
}

/** Asks until the answer is one of `wanted`; a 429 is asked again for as long as any part may take, a 500 is counted. */
async function asked(
  scene: Scene,
  found: Findings,
  method: string,
  path: string,
  body: unknown,
  wanted: readonly number[],
) {
  let answer: Awaited<ReturnType<typeof ask>> | undefined;
  return until(
    () => `${method} ${path} answers ${answer?.status} ${JSON.stringify(answer?.body)}`,
    async () => {
      answer = await ask(scene, method, path, body);
      found.statuses.set(answer.status, (found.statuses.get(answer.status) ?? 0) + 1);
      if (!wanted.includes(answer.status) && answer.status !== 429 && answer.status < 500) {
        throw new Error(`${method} ${path} answers ${answer.status} ${JSON.stringify(answer.body)}`);
      }
      return wanted.includes(answer.status) && answer;
    },
    WITHIN_MS,
  );
}

/** Through the API, the engine, the recipients' server and the webhook. */
async function sendOverApi(scene: Scene, found: Findings, name: string): Promise<void> {
  const subject = `api ${name}`;
  const mail = { from: `a@${DOMAIN}`, to: ["b@recipient.example"], subject, text_body: "x" };
  const { body } = await asked(scene, found, "POST", "/v1/send", mail, [202]);
  found.sent.push({ id: String(body.id), subject });
  await scene.receiver.waitFor((request) => request.body.includes(String(body.id)), WITHIN_MS);
}

async function submit(scene: Scene, found: Findings, name: string): Promise<void> {
  const subject = `submitted ${name}`;
  const login = Buffer.from(`\0postern\0${scene.live_key}`).toString("base64");
  const content = `From: a@${DOMAIN}\r\nTo: b@recipient.example\r\nSubject: ${subject}\r\n\r\nx\r\n`;
  await until(
    "submission takes a mail",
    async () => {
      const smtp = await rawSmtp(scene.submission_port);
      try {
        await smtp.reply();
        await smtp.ask("EHLO client.example");
        await smtp.ask("STARTTLS");
        await smtp.startTls();
        await smtp.ask("EHLO client.example");
        if ((await smtp.ask(`AUTH PLAIN ${login}`)).code !== 235) return false;
        const reported = await smtp.deliver({ from: `a@${DOMAIN}`, to: ["b@recipient.example"], content });
        return reported.code === 250;
      } finally {
        smtp.destroy();
      }
    },
    WITHIN_MS,
  );
  found.sent.push({ id: subject, subject });
  await until(`${subject} arrives`, () => scene.sink.messages.some(({ bytes }) => bytes.includes(subject)), WITHIN_MS);
}

/** Through the MX and the processing behind it to the webhook. */
async function takeIn(scene: Scene, name: string): Promise<void> {
  const subject = `received ${name}`;
  const content = `From: c@elsewhere.example\r\nTo: ${MAILBOX}\r\nSubject: ${subject}\r\n\r\nx\r\n`;
  const smtp = await rawSmtp(scene.mx_port);
  try {
    await smtp.reply();
    const reported = await smtp.deliver({ from: "c@elsewhere.example", to: [MAILBOX], content });
    if (reported.code !== 250) throw new Error(`the MX answers ${reported.text}`);
  } finally {
    smtp.destroy();
  }
  await scene.receiver.waitFor((request) => request.body.includes(subject), WITHIN_MS);
}

/** A job of the clock role, from its preview to its end. */
async function commitImport(scene: Scene, found: Findings): Promise<void> {
  const list = { csv: "email,reason\ngone@recipient.example,manual\n" };
  const preview = await asked(scene, found, "POST", "/v1/imports/suppressions/preview", list, [201]);
  const path = `/v1/imports/suppressions/jobs/${(preview.body.job as unknown as { id: string }).id}`;
  await asked(scene, found, "POST", `${path}/commit`, undefined, [202]);
  await until(
    "an import ends",
    async () => {
      const { body } = await asked(scene, found, "GET", path, undefined, [200]);
      return (body.job as unknown as { status: string }).status === "committed";
    },
    WITHIN_MS,
  );
}

async function verifyDomain(scene: Scene, found: Findings): Promise<void> {
  const domain = await findDomain(scene, found);
  const { body } = await asked(scene, found, "POST", `/v1/domains/${domain}/verify`, undefined, [200]);
  if ((body as { verified?: unknown }).verified !== true)
    throw new Error(`the domain is not verified: ${JSON.stringify(body).slice(0, 300)}`);
}
