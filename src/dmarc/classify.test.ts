import assert from "node:assert/strict";
import { test } from "node:test";
import { classify, type Known } from "./classify.ts";
import type { SourceRow } from "./types.ts";

const known: Known = {
  domain: "example.com",
  our_keys: new Set(["postern1._domainkey.example.com"]),
  our_hosts: new Set(["bounces.postern.test"]),
  isOurs: (ip) => ip === "192.0.2.1",
  isAuthorised: (ip) => ip === "192.0.2.2",
};
const ours = ["postern1._domainkey.example.com"];
const source = (more: Partial<SourceRow> = {}): SourceRow => ({
  ...{ source_ip: "198.51.100.7", total: 10, pass_dkim: 0, pass_spf: 0, aligned: 0, forwarded: 0 },
  ...{ dkim_domains: [], dkim_passed: [], spf_domains: [], spf_passed: [], reporters: [] },
  ...{ first_seen: "2026-11-01", last_seen: "2026-11-02", ...more },
});

test("an address we send from is ours, whatever reporters say", () => {
  assert.equal(classify(source({ source_ip: "192.0.2.1", forwarded: 10 }), known), "ours");
});

test("our key's signature is ours, unless the mail came through somebody else", () => {
  assert.equal(classify(source({ dkim_passed: ours, pass_dkim: 10 }), known), "ours");
  assert.equal(classify(source({ dkim_passed: ours, spf_passed: ["bounces.postern.test"] }), known), "ours");
  assert.equal(classify(source({ dkim_passed: ours, spf_passed: ["pt-bounces.example.com"] }), known), "ours");
  assert.equal(classify(source({ dkim_passed: ours, spf_passed: ["forwarder.example"] }), known), "forwarder");
});

test("a forwarder is one that reporters say forwards half of its mail", () => {
  assert.equal(classify(source({ forwarded: 5 }), known), "forwarder");
  assert.equal(classify(source({ forwarded: 4 }), known), "unknown");
});

test("who is in the SPF record, or passes for the domain, is authorised", () => {
  assert.equal(classify(source({ source_ip: "192.0.2.2" }), known), "authorised");
  assert.equal(classify(source({ pass_dkim: 1, dkim_passed: ["s1._domainkey.example.com"] }), known), "authorised");
  assert.equal(classify(source({ pass_spf: 1 }), known), "authorised");
});

test("everybody else is unknown", () => {
  assert.equal(classify(source({ spf_passed: ["spammer.example"] }), known), "unknown");
});
