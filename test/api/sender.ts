// What the tests of sending begin with: an API whose organization may send from `sender.example`, a clock that can be
// moved, and requests that lack nothing unless a test takes something away.
import { fixedClock } from "../../src/platform/clock.ts";
import type { World } from "../../src/platform/world.ts";
import { type Answer, type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { byClock } from "../support/moved-clock.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

export type SendingApi = TestApi & {
  dns: DnsServer;
  domain_id: string;
  /** Moves the wall clock of this process; timeouts go on by real time. */
  advance(ms: number): void;
  /** A complete request with `change` over it; `undefined` takes a field away. */
  send(
    change?: Record<string, unknown>,
    options?: { key?: string | null; headers?: Record<string, string> },
  ): Promise<Answer>;
};

export const GOOD = {
  from: "Shop <orders@sender.example>",
  to: ["anna@recipient.example"],
  subject: "Hello",
  html_body: "<p>Hello</p>",
};

/** Starts it; nothing is delivered until a test calls `startMta`. */
export async function sendingApi(env: Record<string, string> = {}): Promise<SendingApi> {
  const dns = await startDnsServer();
  const shift = fixedClock(0);
  const api = await testApi({ POSTERN_DNS: dns.address, ...env }, (world) => movable(world, () => shift.now()));
  const domain = await addVerifiedDomain(api, dns, "sender.example");
  return {
    ...api,
    dns,
    domain_id: domain.id,
    advance: (ms) => shift.advance(ms),
    send: (change = {}, options = {}) => api.ask("POST", "/v1/send", { ...GOOD, ...change }, options),
    async close() {
      await api.close();
      await dns.stop();
    },
  };
}

function movable(world: World, shiftMs: () => number): World {
  return byClock({ ...world.clock, now: () => world.clock.now() + shiftMs() })(world);
}

/** The stored message as it would leave, without our signature. */
export async function wireOf(api: TestApi, id: string, key?: string): Promise<string> {
  const headers = { accept: "message/rfc822" };
  const { status, body } = await api.ask("GET", `/v1/emails/${id}/content`, undefined, {
    headers,
    ...(key === undefined ? {} : { key }),
  });
  if (status !== 200) throw new Error(`the content of ${id} answers ${status}`);
  return String(body);
}

/** The header fields of a message, unfolded, in order, as [name, value]. */
export function headersOf(wire: string): [string, string][] {
  const head = wire.slice(0, wire.indexOf("\r\n\r\n"));
  return head
    .replace(/\r\n(?=[ \t])/g, "")
    .split("\r\n")
    .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]);
}
