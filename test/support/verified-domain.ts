// Domains for tests: the records that the API asks for, published on the test name server, and verified through the API.
import assert from "node:assert/strict";
import type { Answer } from "./api.ts";
import type { DnsServer } from "./dns-server.ts";

export type ShownRecord = { purpose: string; type: string; name: string; value: string; priority: number | null };

/** Publishes records as `GET /v1/domains/{id}/dns` shows them; other records of the same name and type go. */
export function publish(dns: DnsServer, records: ShownRecord[]): void {
  for (const { type, name, value, priority } of records) {
    dns.set(name, type, [type === "MX" ? { exchange: value, preference: priority } : value]);
  }
}

/** The API in process (api.ts) or that of a process (`apiOf` of postern-process.ts), which asks with its one key. */
export type Asking = {
  ask(method: string, path: string, body?: unknown, as?: { key?: string }): Promise<Pick<Answer, "status" | "body">>;
};

/**
 * Adds a domain, publishes all its records and verifies it; returns its record. One that sends is `warmed` at once, so
 * that no story meets the limits of a new domain by accident; `warm: false` leaves it in phase 1.
 */
export async function addVerifiedDomain(
  api: Asking,
  dns: DnsServer,
  domain: string,
  options: { type?: "inbound" | "outbound" | "both" | "alias"; key?: string; warm?: boolean } = {},
) {
  const as = options.key === undefined ? {} : { key: options.key };
  const created = await api.ask("POST", "/v1/domains", { domain, type: options.type ?? "outbound" }, as);
  assert.equal(created.status, 201, JSON.stringify(created.body));
  const shown = await api.ask("GET", `/v1/domains/${created.body.id}/dns`, undefined, as);
  publish(dns, shown.body.records);
  const verified = await api.ask("POST", `/v1/domains/${created.body.id}/verify`, undefined, as);
  assert.equal(verified.body.status, "verified", JSON.stringify(verified.body));
  const sends = verified.body.type === "outbound" || verified.body.type === "both";
  if (sends && options.warm !== false) {
    const warmed = await api.ask("POST", `/v1/domains/${created.body.id}/warming/start`, { phase: "warmed" }, as);
    assert.equal(warmed.status, 200, JSON.stringify(warmed.body));
  }
  const { summary: _summary, records: _records, ...record } = verified.body;
  // As it is now: what it may send may have changed since.
  const { body: now } = await api.ask("GET", `/v1/domains/${created.body.id}`, undefined, as);
  return { ...record, ...(now.warming === undefined ? {} : { warming: now.warming }) };
}
