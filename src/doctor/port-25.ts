// Port 25 in both directions: whether mail can leave, tried with somebody's server only when one is named, and whether other
// servers reach our MX, tried from here. Not here: which address the MX listens on (../doctor.ts, names.ts).
import { createConnection } from "node:net";
import type { FoundConfig } from "../config.ts";
import type { Resolver } from "../platform/dns/resolver.ts";
import { type Check, ok, problem, skipped } from "./check.ts";
import { isLocal } from "./local.ts";
import { answersHealth } from "./running.ts";

const OUT = "port 25";
const IN = "port 25 in";
const SMTP_PORT = 25;
const GREETING_MS = 10_000;
const GREETING_LENGTH_MAX = 100;
/** This machine has no route there, such as one without IPv6. */
const NO_WAY = new Set(["ENETUNREACH", "EADDRNOTAVAIL", "EHOSTUNREACH"]);
/** The error code of getaddrinfo both for a name without an address and for one that no server answered about. */
const UNKNOWN_NAME = "ENOTFOUND";
const NO_NAME = new Set([UNKNOWN_NAME, "EAI_AGAIN", "EAI_FAIL"]);

/** The one check that talks to a stranger, hence only when asked for. */
export async function checkWayOut(server: string | null, { testing }: Pick<FoundConfig, "testing">): Promise<Check> {
  if (server === null) {
    return skipped(
      OUT,
      "Whether mail can leave through port 25 was not tried: it means calling somebody's server.",
      "postern doctor --try-smtp <a mail server that may be called>",
    );
  }
  const port = testing.outbound_port ?? SMTP_PORT;
  const greeting = await readGreeting(server, port);
  if (greeting.startsWith("220")) return ok(OUT, `${server} answers on port ${port}: ${greeting}`);
  if (NO_NAME.has(greeting)) return withoutAddress(server, greeting);
  return problem(
    OUT,
    `${server} cannot be reached on port ${port}: ${greeting}.`,
    "Many hosts close port 25: ask them to open it, or send through a relay.",
  );
}

/** Nobody was called: it says nothing about the port. */
function withoutAddress(server: string, code: string): Check {
  if (code === UNKNOWN_NAME) {
    const says = `Whether mail can leave was not tried: there is no host ${server}, as its name has no address.`;
    return problem(OUT, says, "Correct the name, or name another mail server that may be called.");
  }
  const says = `Whether mail can leave was not tried: no name server answers where ${server} is (${code}).`;
  return problem(OUT, says, "See that this machine can look names up, or name the server by its IP address.");
}

type InConfig = Pick<FoundConfig, "mx" | "mx_host" | "internal" | "testing">;

/** Calls port 25 of each address of our MX, while a Postern runs here. */
export async function checkWayIn(config: InConfig, resolver: Pick<Resolver, "a" | "aaaa">): Promise<Check[]> {
  const { mx, mx_host, internal, testing } = config;
  // The check of the MX says it.
  if (isLocal(mx.host) && testing.outbound_port === null) return [];
  const answers = await Promise.all([resolver.a(mx_host), resolver.aaaa(mx_host)]);
  const addresses = answers.flatMap((answer) => (answer.kind === "found" ? answer.records : []));
  if (addresses.length === 0) return [];
  if (!(await answersHealth(internal))) {
    const says = `Whether ${mx_host} answers on port 25 was not tried: no Postern runs here.`;
    return [skipped(IN, says, "Run this again while Postern runs.")];
  }
  return Promise.all(addresses.map((ip) => checkAddress(config, ip)));
}

async function checkAddress({ mx_host, testing }: InConfig, ip: string): Promise<Check> {
  const port = testing.outbound_port ?? SMTP_PORT;
  const greeting = await readGreeting(ip, port);
  if (greeting.startsWith(`220 ${mx_host} `)) {
    return ok(IN, `${mx_host} answers on port ${port} of ${ip}, as seen from this machine.`);
  }
  if (/^\d{3}[ -]/.test(greeting)) {
    const says = `Port ${port} of ${ip} is another server's (${greeting}): mail for ${mx_host} does not arrive here.`;
    return problem(IN, says, `Let ${mx_host} lead to this machine, and stop the other mail server if it runs here.`);
  }
  if (NO_WAY.has(greeting)) return skipped(IN, `Port ${port} of ${ip} was not tried: from here nothing leads there.`);
  const says = `Port ${port} of ${ip} (${mx_host}) does not answer: ${greeting}. No mail and no bounce arrives.`;
  const remedy =
    "Open port 25 in the firewalls of the machine and of its provider. A router that does not lead back to itself hides it from here: try from elsewhere.";
  return problem(IN, says, remedy);
}

/** The first line, or why there is none. */
function readGreeting(host: string, port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = createConnection({ host, port, timeout: GREETING_MS });
    const end = (text: string): void => {
      socket.destroy();
      resolve(text);
    };
    socket.once("data", (bytes) => end(firstLine(bytes)));
    socket.once("timeout", () => end("no answer"));
    socket.once("error", (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
    socket.once("close", () => end("the connection was closed"));
  });
}

function firstLine(bytes: Buffer): string {
  const [line = ""] = bytes.toString("latin1").split("\r\n");
  return line.replace(/[^\x20-\x7e]/g, "?").slice(0, GREETING_LENGTH_MAX);
}
