// Which names are taken as a customer's domain.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Refusal } from "../platform/refusal.ts";
import { readDomainName } from "./names.ts";

const hosts = {
  hostname: "postern.test",
  mx_host: "mx.postern.test",
  bounce_host: "bounces.postern.test",
  report_domain: "reports.postern.test",
  masked_domain: "masked.example",
  spf_host: "_spf.postern.test",
  base_url: "https://api.postern.test:8443",
};

const taken: [string, string][] = [
  ["example.com", "example.com"],
  ["Mail.Example.COM", "mail.example.com"],
  [" example.com. ", "example.com"],
  ["bücher.example", "xn--bcher-kva.example"],
  ["news.postern.test", "news.postern.test"],
  ["shop.github.io", "shop.github.io"],
  ["example.co.uk", "example.co.uk"],
  ["a.b.c.d.example.org", "a.b.c.d.example.org"],
];
for (const [given, name] of taken) {
  test(`"${given}" is taken as ${name}`, () => assert.equal(readDomainName(hosts, given), name));
}

const long = `${"a".repeat(60)}.${"b".repeat(60)}.${"c".repeat(60)}.${"d".repeat(60)}`;
const refused: [string, RegExp][] = [
  ["", /must be a domain name/],
  ["localhost", /must be a domain name/],
  ["https://example.com", /must be a domain name/],
  ["anna@example.com", /must be a domain name/],
  ["example.com/path", /must be a domain name/],
  ["192.0.2.1", /must be a domain name/],
  ["[2001:db8::1]", /must be a domain name/],
  ["_dmarc.example.com", /must be a domain name/],
  ["-a.example.com", /must be a domain name/],
  ["example..com", /must be a domain name/],
  ["*.example.com", /must be a domain name/],
  ["exa mple.com", /must be a domain name/],
  [`${long}.com`, /at most 230/],
  ["co.uk", /public suffix/],
  ["github.io", /public suffix/],
  ["duckdns.org", /public suffix/],
  ["postern.test", /host of this service/],
  ["api.postern.test", /host of this service/],
  ["mx.postern.test", /host of this service/],
  ["x.bounces.postern.test", /host of this service/],
  ["reports.postern.test", /host of this service/],
  ["simulator.postern.test", /host of this service/],
  ["x.simulator.postern.test", /host of this service/],
  ["a.masked.example", /host of this service/],
];
for (const [given, message] of refused) {
  test(`"${given.slice(0, 40)}" is refused with a sentence on 'domain'`, () => {
    assert.throws(
      () => readDomainName(hosts, given),
      (error: Refusal) => error instanceof Refusal && error.detail.field === "domain" && message.test(error.message),
    );
  });
}
