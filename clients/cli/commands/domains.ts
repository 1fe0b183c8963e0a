// `postern domains add X --wait`: a domain from its name to "verified"; `postern domains dns X`: its records, to be published.
import type { Command } from "commander";
import type { DnsRecord } from "../../node/src/postern.ts";
import { CliError, STATUS } from "../exit.ts";
import { tableOf } from "../output.ts";
import { acting, type Session, type Surroundings, withGlobals } from "../session.ts";
import { groupOf } from "./resources.ts";

const CHECK_EVERY_S = 10;
const WAIT_MINUTES = 30;
const FORMATS = ["table", "bind", "json"];

type AddOptions = { type?: string; wait?: boolean; timeout?: string; format?: string; warmed?: boolean };

export function addDomains(program: Command, around: Surroundings): void {
  const domains = groupOf(program, ["domains"]);
  withGlobals(domains.command("add"))
    .description("create a domain and show the records to publish; with --wait until they are seen")
    .argument("<domain>")
    .option("--type <type>", "outbound, inbound, both or alias", "outbound")
    .option("--warmed", "mailbox providers know the domain already: no limits of the first weeks")
    .option("--format <format>", "table, bind (a zone file) or json", "table")
    .option("--wait", "check until the domain is verified")
    .option("--timeout <minutes>", "how long to wait", String(WAIT_MINUTES))
    .action(acting(around, add));
  const generated = domains.commands.findIndex((command) => command.name() === "dns");
  if (generated >= 0) (domains.commands as Command[]).splice(generated, 1);
  withGlobals(domains.command("dns"))
    .description("the DNS records of a domain, and what stands there now")
    .argument("<id>", "its id or its name")
    .option("--format <format>", "table, bind (a zone file) or json", "table")
    .action(acting(around, dns));
}

async function add(session: Session, name: string, options: AddOptions): Promise<void> {
  refuseFormat(options.format ?? "table");
  const minutes = minutesOf(options.timeout ?? String(WAIT_MINUTES));
  const { out } = session;
  const client = session.client();
  const asked = { domain: name, type: options.type ?? "outbound", ...(options.warmed ? { warming: "warmed" } : {}) };
  const domain = await client.domains.create(asked as never);
  const { records } = await client.domains.dns(domain.id);
  if (!out.isJson) {
    out.line(`${out.paint("bold", domain.domain)} was created. Publish these records:\n`);
    showRecords(session, domain.domain, records, options.format);
  }
  if (!options.wait) {
    if (out.isJson) return void out.data({ domain, records });
    return void out.say(`\nThen: postern domains verify ${domain.domain}`);
  }
  // The one JSON document comes at the end; what has to be published is needed before.
  if (out.isJson) out.say(`Publish these records:\n${zoneOf(domain.domain, records)}`);
  const verified = await waitVerified(session, domain.id, minutes);
  if (out.isJson) out.data({ domain: verified, records: (await client.domains.dns(domain.id)).records });
  else if (verified.verified) out.line(`${out.paint("green", "verified")}  ${domain.domain}`);
  if (!verified.verified)
    throw new CliError(
      `${domain.domain} is not verified yet; go on with: postern domains dns ${domain.domain}`,
      STATUS.failed,
    );
}

function minutesOf(text: string): number {
  if (/^\d{1,5}(\.\d+)?$/.test(text)) return Number(text);
  throw new CliError(`--timeout takes a number of minutes, not '${text}'`);
}

async function waitVerified(session: Session, id: string, minutes: number) {
  const { out, signal } = session;
  const client = session.client();
  const until = Date.now() + minutes * 60_000;
  let shown = "";
  for (;;) {
    const checked = await client.domains.verify(id, { signal });
    const { records } = await client.domains.dns(id, { signal });
    const lacking = records.filter(({ required, status }) => required && status !== "ok");
    const says = lacking.map(({ purpose, status }) => `${purpose} ${status}`).join(", ");
    if (checked.verified || Date.now() >= until) return checked;
    if (says !== shown) out.say(`waiting: ${says}`);
    shown = says;
    await pause(CHECK_EVERY_S * 1_000, signal);
  }
}

/** Rejects when the person wants out. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      reject(new CliError("interrupted", STATUS.interrupted));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", end);
      resolve();
    }, ms);
    signal.addEventListener("abort", end, { once: true });
  });
}

async function dns(session: Session, name: string, { format = "table" }: { format?: string }): Promise<void> {
  refuseFormat(format);
  const { domain, records } = await session.client().domains.dns(name);
  if (session.out.isJson && format !== "bind") return session.out.data({ domain, records });
  showRecords(session, domain, records, format);
}

function refuseFormat(format: string): void {
  if (!FORMATS.includes(format)) throw new CliError(`--format is ${FORMATS.join(", ")}, not '${format}'`);
}

function showRecords({ out }: Session, domain: string, records: readonly DnsRecord[], format = "table"): void {
  if (format === "json") return void out.data({ domain, records });
  if (format === "bind") return void out.line(zoneOf(domain, records));
  out.line(
    tableOf(
      records.map(({ status, type, name, required }) => ({ name, type, status, required })),
      out,
    ),
  );
  for (const { type, name, value, priority, hint } of records) {
    out.line(`\n${out.paint("bold", `${type} ${name}`)}\n  ${priority === null ? "" : `${priority} `}${value}`);
    if (hint) out.line(out.paint("yellow", `  ${hint}`));
  }
}

/** RFC 1035 §5.1; a text of over 255 octets is written in pieces. */
function zoneOf(domain: string, records: readonly DnsRecord[]): string {
  const lines = records.map(({ type, name, value, priority, ttl }) => {
    const data =
      type === "TXT"
        ? (value.match(/.{1,255}/gs) ?? [""]).map((piece) => `"${piece.replaceAll(/["\\]/g, "\\$&")}"`).join(" ")
        : `${priority === null ? "" : `${priority} `}${value}.`;
    return `${name}. ${ttl} IN ${type} ${data}`;
  });
  return [`; ${domain}`, ...lines].join("\n");
}
