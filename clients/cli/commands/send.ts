// `postern send`: one mail, from flags or a JSON file.
import type { Command } from "commander";
import { attachmentFromFile } from "../../node/src/postern.ts";
import { CliError } from "../exit.ts";
import { acting, readInput, readNamed, type Session, type Surroundings, withGlobals } from "../session.ts";

type SendOptions = {
  from?: string;
  to?: string[];
  cc?: string[];
  bcc?: string[];
  replyTo?: string[];
  subject?: string;
  text?: string;
  html?: string;
  htmlFile?: string;
  textFile?: string;
  template?: string;
  var?: string[];
  attach?: string[];
  tag?: string[];
  header?: string[];
  at?: string;
  file?: string;
  idempotencyKey?: string;
  dryRun?: boolean;
};

export function addSend(program: Command, around: Surroundings): void {
  withGlobals(program.command("send"))
    .description("send one mail")
    .option("--from <address>", '"Shop <orders@shop.example>"')
    .option("--to <address...>", "whom it goes to")
    .option("--cc <address...>", "in copy")
    .option("--bcc <address...>", "in copy, unseen")
    .option("--reply-to <address...>", "where answers go")
    .option("--subject <text>", "the subject")
    .option("--text <text>", "the body as plain text; - reads it from standard input")
    .option("--text-file <path>", "the same from a file")
    .option("--html <html>", "the body as HTML")
    .option("--html-file <path>", "the same from a file")
    .option("--template <id|slug>", "a stored template instead of bodies")
    .option("--var <name=value...>", "a variable of the template")
    .option("--attach <path...>", "a file to attach")
    .option("--tag <tag...>", "for filters and statistics")
    .option("--header <name:value...>", "a header field")
    .option("--at <time>", "when to send it (RFC 3339)")
    .option("--file <path>", "the whole request as JSON; - reads it from standard input. Flags go before it")
    .option("--idempotency-key <key>", "makes it safe to run twice")
    .option("--dry-run", "check it only: needs a test key, which never sends")
    .action(acting(around, send));
}

async function send(session: Session, options: SendOptions): Promise<void> {
  const client = session.client();
  const request = await requestOf(session, options);
  if (options.dryRun && (await client.me.get()).environment !== "test") {
    throw new CliError("--dry-run needs a test key: whatever a live key sends is sent (postern login --profile test)");
  }
  const asked = options.idempotencyKey === undefined ? {} : { idempotencyKey: options.idempotencyKey };
  const answer = await client.emails.send(request as never, asked);
  const { out } = session;
  if (out.isJson) return void out.data(answer);
  out.line(`${out.paint("green", answer.status)}  ${answer.id}`);
  for (const { email, reason } of answer.suppressed)
    out.line(`${out.paint("yellow", "suppressed")}  ${email} (${reason})`);
  if (answer.environment === "test") out.say("With a test key: it was checked, and is not sent.");
  else out.say(`Follow it: postern why ${answer.id}`);
}

async function requestOf(session: Session, options: SendOptions): Promise<Record<string, unknown>> {
  const base = options.file === undefined ? {} : parseRequest(await textOf(session, options.file, "--file"));
  const given: Record<string, unknown> = {
    from: options.from,
    to: options.to,
    cc: options.cc,
    bcc: options.bcc,
    reply_to: options.replyTo,
    subject: options.subject,
    text_body:
      options.textFile === undefined
        ? options.text === "-"
          ? await textOf(session, "-", "--text")
          : options.text
        : await textOf(session, options.textFile, "--text-file"),
    html_body: options.htmlFile === undefined ? options.html : await textOf(session, options.htmlFile, "--html-file"),
    [/^[0-9a-f]{8}-/i.test(options.template ?? "") ? "template_id" : "template"]: options.template,
    variables: options.var && pairsOf(options.var, "=", "--var"),
    headers: options.header && pairsOf(options.header, ":", "--header"),
    tags: options.tag,
    scheduled_at: options.at,
    attachments: options.attach && (await Promise.all(options.attach.map(attached))),
  };
  const named = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const request = { ...base, ...named };
  const lacking = ["from", "to"].filter((name) => (request as Record<string, unknown>)[name] === undefined);
  if (lacking.length > 0) throw new CliError(`missing: ${lacking.map((name) => `--${name}`).join(", ")}`);
  return request;
}

async function attached(path: string) {
  readNamed(path, "--attach");
  return await attachmentFromFile(path);
}

function parseRequest(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch (error) {
    throw new CliError(`--file is not JSON: ${(error as Error).message}`);
  }
}

async function textOf(session: Session, path: string, option: string): Promise<string> {
  return path === "-" ? (await readInput(session)).toString() : readNamed(path, option).toString();
}

function pairsOf(words: string[], sign: string, option: string): Record<string, string> {
  return Object.fromEntries(
    words.map((word) => {
      const at = word.indexOf(sign);
      if (at < 1) throw new CliError(`${option} takes name${sign}value, not '${word}'`);
      return [word.slice(0, at).trim(), word.slice(at + 1).trim()];
    }),
  );
}
