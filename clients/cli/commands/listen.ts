// `postern listen 3000/hooks`: events reach a program on this machine as webhooks would, without a tunnel. `postern tail`: the
// same events for people. `postern trigger`: make one happen.
import { createHmac, randomBytes, randomUUID } from "node:crypto";
import { createInterface } from "node:readline";
import type { Command } from "commander";
import { SIGNATURE_HEADER, sign } from "../../node/src/postern.ts";
import { type ReceivedEvent, readEvents } from "../events.ts";
import { CliError, STATUS } from "../exit.ts";
import { printable } from "../output.ts";
import { acting, readNamed, type Session, type Surroundings, withGlobals } from "../session.ts";

const TYPES = ["email.received", "email.delivered", "email.bounced", "email.deferred", "email.complained"];
const FAILED = ["email.bounced", "email.deferred", "email.complained"];
const FORWARD_MS = 15_000;

export function addListen(program: Command, around: Surroundings): void {
  withGlobals(program.command("listen"))
    .description("forward events to a program on this machine, signed as webhooks are")
    .argument("[target]", "a port, a port with a path (3000/hooks) or a URL; without it events are only shown")
    .option("--events <events>", `some of ${TYPES.join(",")}`)
    .option("--secret <whsec>", "sign with this secret; without it one is made for this run and shown")
    .option("--print-secret", "print the secret of this run alone on the first line of standard output")
    .option("--after <id>", "begin after the event with this id")
    .action(acting(around, listen));
  withGlobals(program.command("tail"))
    .description("show what happens, as it happens")
    .option("--events <events>", `some of ${TYPES.join(",")}`)
    .option("--failed", "only bounces, deferrals and complaints")
    .option("--to <text>", "only recipients that contain this text")
    .action(acting(around, tail));
  withGlobals(program.command("trigger"))
    .description("send a sample event to a webhook now, or receive a mail from a file")
    .argument("<event>", TYPES.join(", "))
    .option("--webhook <id>", "which endpoint; not needed where there is one")
    .option("--file <path>", "email.received: the mail (RFC 5322), simulated as received")
    .option("--to <address>", "email.received: whom it is for")
    .action(acting(around, trigger));
}

type ListenOptions = { events?: string; secret?: string; printSecret?: boolean; after?: string };

async function listen(session: Session, target: string | undefined, options: ListenOptions): Promise<void> {
  const { out, signal } = session;
  const { api_key, base_url } = session.access();
  const url = target === undefined ? null : urlOf(target);
  const types = typesOf(options.events);
  if (options.secret !== undefined && !/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/.test(options.secret))
    throw new CliError("--secret takes a signing secret: whsec_ and at least 32 characters of base64");
  if (options.after !== undefined && !/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(options.after))
    throw new CliError(`--after takes the id of an event, not '${options.after}'`);
  const secret = options.secret ?? `whsec_${randomBytes(33).toString("base64")}`;
  await session.client().me.get();
  if (options.printSecret) out.line(secret);
  else if (url) out.say(`Signing secret of this run: ${secret}`);
  const again = session.stdin.isTTY === true ? "r and Enter sends the last one again, " : "";
  out.say(url ? `Ready: events go to ${url} (${again}Ctrl-C ends)` : "Ready (Ctrl-C ends)");
  const source = { base_url, api_key, types, after: options.after ?? null, signal };
  let last: ReceivedEvent | null = null;
  const pass = async (received: ReceivedEvent): Promise<void> => {
    const answer = url === null ? null : await forward(url, received, secret);
    if (out.isJson) out.data({ ...received, body: JSON.parse(received.body), forwarded: answer });
    else out.line(`${lineOf(session, received)}${answer === null ? "" : `  → ${outcomeOf(session, answer)}`}`);
  };
  using _words = onWord(session, "r", () => (last && url !== null ? pass(last) : null));
  for await (const received of readEvents(source, (sentence) => out.say(sentence))) {
    last = received;
    await pass(received);
  }
}

/** Acts each time a person at a terminal types this word and Enter, until it is disposed of. */
function onWord({ out, stdin }: Session, word: string, act: () => Promise<void> | null): Disposable {
  if (stdin.isTTY !== true) return { [Symbol.dispose]: () => undefined };
  const lines = createInterface({ input: stdin as never });
  lines.on("line", (line) => {
    if (line.trim() === word) void (act() ?? out.say("no event has come yet"));
  });
  return { [Symbol.dispose]: () => lines.close() };
}

type Answer = { status: number | null; ms: number; error: string | null };

/** Byte for byte what a webhook gets, with its headers. */
async function forward(url: string, { id, event, body }: ReceivedEvent, secret: string): Promise<Answer> {
  const started = performance.now();
  const ms = () => Math.round(performance.now() - started);
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "user-agent": "Postern-Webhooks/1",
        "x-service-event": event,
        "x-service-event-id": id,
        "x-service-delivery-id": randomUUID(),
        "x-service-attempt": "1",
        [SIGNATURE_HEADER]: sign(body, secret),
        ...standardHeaders(id, body, secret),
      },
      body,
      redirect: "manual",
      signal: AbortSignal.timeout(FORWARD_MS),
    });
    await response.arrayBuffer();
    return { status: response.status, ms: ms(), error: null };
  } catch (error) {
    const cause = (error as { cause?: { code?: string } }).cause?.code;
    return { status: null, ms: ms(), error: cause ?? (error as Error).message };
  }
}

/**
 * The headers of Standard Webhooks (https://www.standardwebhooks.com): the key is what stands behind `whsec_`, read as
 * base64.
 */
function standardHeaders(id: string, body: string, secret: string): Record<string, string> {
  const seconds = Math.floor(Date.now() / 1000);
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const signature = createHmac("sha256", key).update(`${id}.${seconds}.${body}`).digest("base64");
  return { "webhook-id": id, "webhook-timestamp": String(seconds), "webhook-signature": `v1,${signature}` };
}

function outcomeOf({ out }: Session, { status, ms, error }: Answer): string {
  if (status === null) return out.paint("red", `${error} ${ms} ms`);
  return out.paint(status >= 200 && status < 300 ? "green" : "red", `${status} ${ms} ms`);
}

function urlOf(target: string): string {
  const [, port, path = "/"] = /^:?(\d{1,5})(\/.*)?$/.exec(target) ?? [];
  const text = port === undefined ? target : `http://127.0.0.1:${port}${path}`;
  if (!URL.canParse(text) || !/^https?:/.test(text))
    throw new CliError(`'${target}' is neither a port, a port with a path, nor a URL`);
  return text;
}

function typesOf(text: string | undefined): string[] {
  const types = text?.split(",").map((name) => name.trim()) ?? [];
  const unknown = types.find((name) => !TYPES.includes(name));
  if (unknown !== undefined) throw new CliError(`there is no event '${unknown}': ${TYPES.join(", ")}`);
  return types;
}

type Shown = {
  timestamp: string;
  recipient?: string;
  to?: string;
  from: string | null;
  subject: string | null;
  email_id: string;
  diag_message?: string | null;
};

function lineOf({ out }: Session, { event, body }: ReceivedEvent): string {
  const shown = JSON.parse(body) as Shown;
  const style =
    event === "email.delivered" || event === "email.received" ? "green" : event === "email.deferred" ? "yellow" : "red";
  const time = out.paint("dim", `${shown.timestamp.slice(11, 19)}Z`);
  const about = [shown.recipient ?? shown.to ?? "", shown.subject ?? "", shown.diag_message ?? ""];
  return `${time} ${out.paint(style, event.replace("email.", "").padEnd(10))} ${printable(about.filter((text) => text !== "").join("  "))}`;
}

type TailOptions = { events?: string; failed?: boolean; to?: string };

async function tail(session: Session, { events, failed, to }: TailOptions): Promise<void> {
  const { out, signal } = session;
  const { api_key, base_url } = session.access();
  await session.client().me.get();
  out.say("Watching (Ctrl-C ends)");
  const source = { base_url, api_key, types: failed ? FAILED : typesOf(events), after: null, signal };
  for await (const received of readEvents(source, (sentence) => out.say(sentence))) {
    const shown = JSON.parse(received.body) as Shown;
    if (to !== undefined && !(shown.recipient ?? shown.to ?? "").toLowerCase().includes(to.toLowerCase())) continue;
    if (out.isJson) out.data(shown);
    else out.line(lineOf(session, received));
  }
}

type TriggerOptions = { webhook?: string; file?: string; to?: string };

async function trigger(session: Session, event: string, { webhook, file, to }: TriggerOptions): Promise<void> {
  const { out } = session;
  const client = session.client();
  const [type] = typesOf(event);
  if (type === "email.received" && file !== undefined) {
    if (to === undefined) throw new CliError("say whom the mail is for: --to address@your-domain");
    const answer = await client.inbound.simulate({
      to: [to],
      raw_base64: readNamed(file, "--file").toString("base64"),
    } as never);
    const said = answer.results.map((one) => `${one.recipient} ${one.smtp_code} ${one.message}`).join("; ");
    if (out.isJson) out.data(answer);
    else if (answer.accepted) out.line(`${out.paint("green", "received")}  ${said}`);
    if (!answer.accepted) throw new CliError(`the mail was refused: ${said}`, STATUS.failed);
    return;
  }
  const id = webhook ?? (await onlyWebhook(session));
  const delivery = await client.webhooks.test(id, { event: type } as never);
  const is = delivery.error === null;
  const says = is ? `answered ${delivery.status_code}` : String(delivery.error);
  if (out.isJson) out.data(delivery);
  else out.line(`${out.paint(is ? "green" : "red", says)}  in ${delivery.duration_ms} ms`);
  if (!is) throw new CliError("the endpoint did not take the event", STATUS.failed);
}

async function onlyWebhook(session: Session): Promise<string> {
  const { items, total } = await session.client().webhooks.list({ limit: 2 });
  const [first] = items;
  if (first && total === 1) return first.id;
  throw new CliError(
    total === 0
      ? "there is no webhook yet: postern webhooks create --url https://…, or use postern listen"
      : `there are ${total} webhooks: say which by --webhook (postern webhooks list)`,
  );
}
