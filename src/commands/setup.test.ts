import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { settingsFrom } from "./setup.ts";

const KNOWN = { hostname: "mail.example.eu", public_addresses: ["192.0.2.10"], tls_cert_file: null };

function again(options: Parameters<typeof settingsFrom>[0], filed: Record<string, string>) {
  return settingsFrom(options, KNOWN, (name) => filed[name] ?? "");
}

/** What the first run wrote, behind a proxy. */
const behindProxy = settingsFrom(
  { host: "mail.example.eu", addresses: "192.0.2.10", notices: "you@example.eu", acme: "off", listen: "127.0.0.1" },
  null,
  () => "",
);

describe("postern setup", () => {
  it("leaves HTTPS and certificates to a proxy with --acme off", () => {
    const { POSTERN_HTTPS, POSTERN_ACME_HTTP, POSTERN_ACME, POSTERN_BASE_URL, POSTERN_ACME_EMAIL } = behindProxy;
    assert.deepEqual([POSTERN_HTTPS, POSTERN_ACME_HTTP, POSTERN_ACME], [undefined, undefined, "off"]);
    assert.equal(POSTERN_BASE_URL, "https://mail.example.eu");
    assert.equal(POSTERN_ACME_EMAIL, "you@example.eu");
  });

  it("keeps that when it is run again without options", () => {
    assert.deepEqual(again({}, behindProxy), {});
  });

  it("takes an address to listen on in any form, and nothing else", () => {
    const mxAt = (listen: string) => settingsFrom({ host: "mail.example.eu", listen }, null, () => "").POSTERN_MX;
    assert.deepEqual(["::1", "[::1]", "127.0.0.1"].map(mxAt), ["[::1]:25", "[::1]:25", "127.0.0.1:25"]);
    assert.throws(() => mxAt("eth0"), /--listen is an address of this machine/);
  });

  it("gets certificates where nothing is set, and turns to them with --acme on", () => {
    const first = settingsFrom({ host: "mail.example.eu", listen: "127.0.0.1" }, null, () => "");
    assert.deepEqual([first.POSTERN_ACME, first.POSTERN_HTTPS], ["on", "127.0.0.1:443"]);
    assert.equal(first.POSTERN_ACME_HTTP, "127.0.0.1:80");
    const { POSTERN_ACME, POSTERN_HTTPS } = again({ acme: "on", listen: "127.0.0.1" }, behindProxy);
    assert.deepEqual([POSTERN_ACME, POSTERN_HTTPS], ["on", "127.0.0.1:443"]);
  });
});
