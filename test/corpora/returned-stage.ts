// Third-party bounces and complaints about mail that was really sent: a Postern process sends to the recipients of a case,
// a server takes the copies, the case's mail comes back by SMTP to a return path or feedback address of them, and what
// became of it is read from the API and from the receiver of webhooks.
import type pg from "pg";
import { parseAddress } from "../../src/mail/address.ts";
import { rawSmtp } from "../support/raw-smtp.ts";
import { fieldOf } from "../support/returned-mail.ts";
import { type Scene, setScene } from "../support/scene.ts";
import type { SmtpSink } from "../support/smtp-sink.ts";
import { receiveAt } from "../support/stories.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";
import type { WebhookSink } from "../support/webhook-sink.ts";
import type { Tally } from "./tally.ts";

/** `recipients`: who the message went to, as the case names them; what is no address gets a stand-in. */
export type ReturnedCase = {
  name: string;
  recipients: readonly string[];
  mail: Buffer;
  to: "return_path" | "feedback";
};

export type RecipientVerdict = {
  /** As the case names it; null for a stand-in when it names nobody. */
  named: string | null;
  email: string;
  status: string;
  bounce_type: "hard" | "soft" | null;
  bounce_code: string | null;
  diag_code: string | null;
  /** True if a report of a delay came after a server had taken it. */
  warned: boolean;
  suppression: { reason: string; feedback_type: string | null } | null;
};

export type Verdict = {
  /** The MX's last reply. */
  answer: string;
  recipients: RecipientVerdict[];
  /** Webhooks about the e-mail after it was delivered: event, recipient and what they say. */
  events: Record<string, unknown>[];
};

export type ReturnedStage = {
  /** Runs the cases, many at a time, those with the same recipient one after the other: in their order, what came or an error. */
  run(cases: readonly ReturnedCase[]): Promise<PromiseSettledResult<Verdict>[]>;
  /** Addresses that are suppressed although every case took its own back: nobody may be. */
  leftSuppressed(): Promise<string[]>;
  close(): Promise<void>;
};

const AT_ONCE = 24;
const WITHIN_MS = 30_000;
const LOOK_MS = 15;
const RECIPIENTS_MAX = 50;
const SENDER = "corpus-out.example";
const STAND_INS = "corpus-there.example";

type Parts = {
  scene: Scene;
  reported: Map<string, Record<string, unknown>[]>;
  arrivals: Map<string, SmtpSink["messages"]>;
  finished: Waiting;
};

let shared: Promise<ReturnedStage> | null = null;

/** The stage that the corpora of a run share; `closeReturnedStage` ends it. */
function returnedStage(): Promise<ReturnedStage> {
  shared ??= setReturnedStage();
  return shared;
}

/** Ends the shared stage, if there is one. One that could not be set has said so to those who asked for it. */
export async function closeReturnedStage(): Promise<void> {
  const stage = await shared?.catch(() => null);
  shared = null;
  await stage?.close();
}

/** Sends, mails back, judges each; at the end nobody may be suppressed whom no case knows. Gives the verdicts that came. */
export async function playReturned<Case extends ReturnedCase>(
  tally: Tally,
  cases: readonly Case[],
  judge: (one: Case, verdict: Verdict) => void,
): Promise<[Case, Verdict][]> {
  const stage = await returnedStage();
  const came: [Case, Verdict][] = [];
  for (const [index, result] of (await stage.run(cases)).entries()) {
    const one = cases[index] as Case;
    await tally.attempt(one.name, () => {
      if (result.status === "rejected") throw result.reason;
      came.push([one, result.value]);
      judge(one, result.value);
    });
  }
  tally.check("addresses suppressed that no case sent to", [], await stage.leftSuppressed());
  return came;
}

/** A scene with all that sends, receives and calls webhooks; what was begun is undone when it fails half-way. */
async function setReturnedStage(): Promise<ReturnedStage> {
  const scene = await setScene();
  try {
    return await startOn(scene);
  } catch (error) {
    await scene.close();
    throw error;
  }
}

async function startOn(scene: Scene): Promise<ReturnedStage> {
  const { ask, dns, sink, receiver } = scene;
  await scene.start(["api", "mx", "mta", "hooks"]);
  const reported = byEmail(receiver);
  const arrivals = byMessageId(sink);
  await addVerifiedDomain(scene, dns, SENDER, { type: "both" });
  const events = ["email.bounced", "email.deferred", "email.complained"];
  await ask("POST", "/v1/webhooks", { url: `${receiver.url}/out`, events });
  const finished = waitForProcessing(await scene.admin());
  const parts: Parts = { scene, reported, arrivals, finished };
  return {
    run: (cases) => runAll(parts, cases),
    leftSuppressed: async () => {
      const { body } = await ask("GET", "/v1/suppressions?limit=100");
      return (body.suppressions as unknown as { email: string }[]).map(({ email }) => email);
    },
    close: () => {
      finished.stop();
      return scene.close();
    },
  };
}

function byMessageId(sink: SmtpSink): Parts["arrivals"] {
  const arrivals: Parts["arrivals"] = new Map();
  sink.onMessage((message) => {
    arrivals.set(message.message_id, [...(arrivals.get(message.message_id) ?? []), message]);
    return null;
  });
  return arrivals;
}

function byEmail(hooks: WebhookSink): Parts["reported"] {
  const reported: Parts["reported"] = new Map();
  hooks.respond(({ body }) => {
    const event = JSON.parse(body.toString()) as Record<string, unknown>;
    const id = String(event.email_id);
    reported.set(id, [...(reported.get(id) ?? []), event]);
    hooks.requests.length = 0;
    return { status: 200 };
  });
  return reported;
}

// When mail is processed, only the database knows: return paths are in no list of the API.
type Waiting = { until(id: string): Promise<void>; stop(): void };

function waitForProcessing(client: pg.Client): Waiting {
  const waiting = new Map<string, () => void>();
  let busy = false;
  const look = async (): Promise<void> => {
    if (busy || waiting.size === 0) return;
    busy = true;
    const { rows } = await client.query(
      "select id from inbound_email where id = any($1) and status not in ('received', 'processing')",
      [[...waiting.keys()]],
    );
    for (const { id } of rows) {
      waiting.get(id)?.();
      waiting.delete(id);
    }
    busy = false;
  };
  const timer = setInterval(() => void look(), LOOK_MS);
  return { until: (id) => new Promise((done) => waiting.set(id, done)), stop: () => clearInterval(timer) };
}

async function runAll(parts: Parts, cases: readonly ReturnedCase[]): Promise<PromiseSettledResult<Verdict>[]> {
  const free = new Map<string, Promise<void>>();
  const slots = Array.from({ length: AT_ONCE }, () => Promise.resolve());
  return Promise.allSettled(
    cases.map(async (one, index) => {
      const addressed = addresses(one, index);
      const done = Promise.withResolvers<void>();
      const before = addressed.map(({ email }) => free.get(email.toLowerCase()));
      for (const { email } of addressed) free.set(email.toLowerCase(), done.promise);
      await Promise.all(before);
      const slot = index % AT_ONCE;
      const turn = slots[slot];
      slots[slot] = done.promise;
      await turn;
      return runOne(parts, one, addressed).finally(done.resolve);
    }),
  );
}

type Addressed = { named: string | null; email: string };

/** What is no address to send to (a host alone, an old gateway's form) stands in as another: the return path tells. */
function addresses({ recipients }: ReturnedCase, index: number): Addressed[] {
  const known = new Map<string, Addressed>();
  const names: (string | null)[] = recipients.length === 0 ? [null] : recipients.slice(0, RECIPIENTS_MAX);
  for (const [place, named] of names.entries()) {
    const parsed = named === null ? null : parseAddress(named);
    const email = parsed?.ok ? parsed.address.email : `case-${index}-${place}@${STAND_INS}`;
    if (!known.has(email.toLowerCase())) known.set(email.toLowerCase(), { named, email });
  }
  return [...known.values()];
}

async function runOne(parts: Parts, one: ReturnedCase, addressed: Addressed[]): Promise<Verdict> {
  const { ask, dns } = parts.scene;
  for (const { email } of addressed) receiveAt(dns, email.slice(email.lastIndexOf("@") + 1), "mx.corpus-there.example");
  const sent = await ask("POST", "/v1/send", {
    from: `list@${SENDER}`,
    to: addressed.map(({ email }) => email),
    subject: one.name.slice(0, 200).replace(/[^ -~]/g, "?"),
    text_body: "Hello",
  });
  if (sent.status !== 202) throw new Error(`it could not be sent: ${JSON.stringify(sent.body)}`);
  const copies = await copiesOf(parts, String(sent.body.message_id), addressed.length);
  const first = copies.find(({ to }) => to[0]?.toLowerCase() === addressed[0]?.email.toLowerCase()) ?? copies[0];
  if (!first) throw new Error("no copy arrived");
  await recorded(parts.scene, String(sent.body.id));
  const feedback = fieldOf(first.bytes, "CFBL-Address").split(";")[0] ?? "";
  // A server that reports on several copies does so to the return path of each.
  const others = copies.filter((copy) => copy !== first).map((copy) => copy.from);
  const paths = one.to === "feedback" ? [feedback] : [first.from, ...others];
  const replies: string[] = [];
  for (const path of paths) replies.push(await bringBack(parts, path, one.mail));
  return verdictOf(parts, String(sent.body.id), addressed, replies[0]!);
}

async function bringBack(parts: Parts, path: string, mail: Buffer): Promise<string> {
  const reply = await sendBack(parts.scene, path, mail);
  const taken = /taken as (\S+)/.exec(reply)?.[1];
  if (taken) await within(parts.finished.until(taken), "the mail was not processed");
  return reply;
}

async function copiesOf({ arrivals }: Parts, messageId: string, count: number): Promise<SmtpSink["messages"]> {
  const until = Date.now() + WITHIN_MS;
  for (;;) {
    const copies = arrivals.get(messageId) ?? [];
    if (copies.length >= count) return copies;
    if (Date.now() > until) throw new Error(`${copies.length} of ${count} copies arrived`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

async function recorded({ ask }: Scene, id: string): Promise<void> {
  const until = Date.now() + WITHIN_MS;
  for (;;) {
    const { body } = await ask("GET", `/v1/emails/${id}`);
    const { status } = body.email as unknown as { status: string };
    if (status === "delivered") return;
    if (Date.now() > until) throw new Error(`the message is ${status}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

async function sendBack({ mx_port }: Scene, to: string, mail: Buffer): Promise<string> {
  const smtp = await rawSmtp(mx_port);
  try {
    await smtp.reply();
    return (await smtp.deliver({ from: "", to: [to], content: mail })).text;
  } finally {
    smtp.destroy();
  }
}

async function within(work: Promise<void>, what: string): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_done, fail) => {
    timer = setTimeout(() => fail(new Error(what)), WITHIN_MS);
  });
  await Promise.race([work, late]).finally(() => clearTimeout(timer));
}

type Shown = Pick<RecipientVerdict, "email" | "status" | "bounce_type" | "bounce_code" | "diag_code">;
type Entry = { reason: string; feedback_type: string | null; id: string };

async function verdictOf(parts: Parts, id: string, addressed: Addressed[], answer: string): Promise<Verdict> {
  const { ask } = parts.scene;
  const [email, timeline] = await Promise.all([ask("GET", `/v1/emails/${id}`), ask("GET", `/v1/emails/${id}/events`)]);
  const shown = (email.body.email as unknown as { recipients: Shown[] }).recipients;
  const entries = timeline.body.events as unknown as { event_type: string; recipient: string }[];
  const late = new Set(entries.filter((one) => one.event_type === "deferred").map(({ recipient }) => recipient));
  const recipients = await Promise.all(
    shown.map(async (recipient): Promise<RecipientVerdict> => {
      const { email, status, bounce_type, bounce_code, diag_code } = recipient;
      const named = addressed.find((one) => one.email.toLowerCase() === email.toLowerCase())?.named ?? null;
      const suppression = await takeBackSuppression(parts.scene, email);
      return { named, email, status, bounce_type, bounce_code, diag_code, warned: late.has(email), suppression };
    }),
  );
  const count = entries.filter((one) => ["deferred", "bounced", "complained"].includes(one.event_type)).length;
  return { answer, recipients, events: await eventsOf(parts, id, count) };
}

async function takeBackSuppression({ ask }: Scene, email: string): Promise<RecipientVerdict["suppression"]> {
  const { body } = await ask("GET", `/v1/suppressions/check?email=${encodeURIComponent(email)}`);
  const [entry, ...others] = body.entries as unknown as Entry[];
  for (const { id } of entry ? [entry, ...others] : []) await ask("DELETE", `/v1/suppressions/${id}`);
  return entry ? { reason: entry.reason, feedback_type: entry.feedback_type } : null;
}

/** As many webhooks as the timeline has events. */
async function eventsOf({ reported }: Parts, id: string, count: number): Promise<Record<string, unknown>[]> {
  const until = Date.now() + WITHIN_MS;
  while ((reported.get(id)?.length ?? 0) < count && Date.now() < until) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  return reported.get(id) ?? [];
}
