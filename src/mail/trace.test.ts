// Trace fields: what they say, and that nothing a client says can break out of them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { dateTime, receivedField, returnPathField } from "./trace.ts";

const hop = {
  helo: "mail.example.com",
  ip: "192.0.2.7",
  by: "mx.postern.test",
  protocol: "ESMTPS",
  tls: "TLSv1.3 TLS_AES_256_GCM_SHA384",
  id: "0198",
  recipient: "anna@in.example",
  at_ms: Date.UTC(2026, 10, 5, 7, 8, 9),
};

test("Received tells from whom, by whom, how, and for whom", () => {
  assert.equal(
    receivedField(hop),
    "Received: from mail.example.com ([192.0.2.7])\r\n" +
      "\tby mx.postern.test (Postern) with ESMTPS (TLSv1.3 TLS_AES_256_GCM_SHA384)\r\n" +
      "\tid 0198\r\n\tfor <anna@in.example>;\r\n\tThu, 5 Nov 2026 07:08:09 +0000\r\n",
  );
});

test("an IPv6 client, no client, no TLS and several recipients", () => {
  assert.match(receivedField({ ...hop, ip: "2001:db8::7" }), /from mail\.example\.com \(\[IPv6:2001:db8::7\]\)\r\n/);
  const bare = receivedField({ ...hop, ip: null, tls: null, protocol: "SMTP", recipient: null });
  assert.match(
    bare,
    /^Received: from mail\.example\.com\r\n\tby mx\.postern\.test \(Postern\) with SMTP\r\n\tid 0198;\r\n\tThu/,
  );
});

test("a client's name cannot break out of the field", () => {
  const hostile = "a)\r\nX-Evil: 1 (<b>\u2028\0";
  const written = receivedField({ ...hop, helo: hostile, recipient: 'x">\r\ny' });
  const lines = written.split("\r\n");
  assert.equal(lines.length, 6);
  assert.ok(
    lines.slice(1, -1).every((line) => line.startsWith("\t")),
    written,
  );
  assert.equal(returnPathField("a\r\nb@example.com"), "Return-Path: <a??b@example.com>\r\n");
  assert.equal(returnPathField(""), "Return-Path: <>\r\n");
});

test("dates are in UTC", () => {
  assert.equal(dateTime(0), "Thu, 1 Jan 1970 00:00:00 +0000");
});
