// What load balancers say first, in both versions of the PROXY protocol, and what is no such header.
import assert from "node:assert/strict";
import { test } from "node:test";
import { PROXY_BINARY_OCTETS_MAX, type ProxyHeader, readProxyHeader } from "./proxy-header.ts";

const SIGNATURE = Buffer.from("0d0a0d0a000d0a515549540a", "hex");
const client = (ip: string, port: number): ProxyHeader => ({ kind: "client", ip, port });
const own: ProxyHeader = { kind: "own" };

function binary(command: number, family: number, content: string): Buffer {
  const rest = Buffer.from(content, "hex");
  return Buffer.concat([SIGNATURE, Buffer.from([command, family, rest.length >> 8, rest.length & 255]), rest]);
}

const V4 = "c0000207c6336401126f0019";
const V6 = "20010db800000000000000000000000720010db8000000000000000000000001126f0019";
const EXTRA_FIELD = "040003000000"; // PP2_TYPE_NOOP

const GOOD: [Buffer, ProxyHeader][] = [
  [Buffer.from("PROXY TCP4 192.0.2.7 198.51.100.1 4719 25\r\n"), client("192.0.2.7", 4719)],
  [Buffer.from("PROXY TCP6 2001:db8::7 2001:db8::1 4719 25\r\n"), client("2001:db8::7", 4719)],
  [Buffer.from("PROXY UNKNOWN\r\n"), own],
  [Buffer.from("PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n"), own],
  [binary(0x21, 0x11, V4), client("192.0.2.7", 4719)],
  [binary(0x21, 0x11, V4 + EXTRA_FIELD), client("192.0.2.7", 4719)],
  [binary(0x21, 0x21, V6), client("2001:db8:0:0:0:0:0:7", 4719)],
  [binary(0x20, 0x00, ""), own],
  [binary(0x20, 0x11, V4), own],
  [binary(0x21, 0x00, ""), own],
  [binary(0x21, 0x12, V4), own], // UDP
  [binary(0x21, 0x22, V6), own],
  [binary(0x21, 0x31, "00".repeat(216)), own], // a Unix socket
  [binary(0x21, 0x32, "00".repeat(216) + EXTRA_FIELD), own],
];

test("a header is read whole, however it is cut, and what follows is left alone", () => {
  for (const [header, expected] of GOOD) {
    for (let at = 0; at < header.length; at += 1) {
      assert.deepEqual(readProxyHeader(header.subarray(0, at)), { kind: "more" }, header.toString("hex"));
    }
    const read = readProxyHeader(Buffer.concat([header, Buffer.from("EHLO x\r\n")]));
    assert.deepEqual(read, { kind: "read", header: expected, octets: header.length });
  }
});

test("what is no header is bad", () => {
  const cases = [
    Buffer.from("EHLO x\r\n"),
    Buffer.from("PROXY TCP4 192.0.2.7 198.51.100.1 4711\r\n"),
    Buffer.from("PROXY TCP4 192.0.2.7 198.51.100.1 4711 25\n"),
    Buffer.from("PROXY TCP4 2001:db8::7 ::1 1 2\r\n"),
    Buffer.from("PROXY TCP4 1.2.3.4 1.2.3.4 99999 25\r\n"),
    Buffer.from("PROXY UNKNOWN\rx\r\n"),
    Buffer.from("x".repeat(107)),
    binary(0x11, 0x11, V4), // version 1 in binary
    binary(0x22, 0x11, V4), // no such command
    binary(0x21, 0x12, V4.slice(0, 22)),
    binary(0x21, 0x22, V4),
    binary(0x21, 0x31, "00".repeat(215)),
    binary(0x21, 0x10, V4), // no such transport
    binary(0x21, 0x41, V4), // no such family
    binary(0x21, 0x11, V4.slice(0, 22)), // an address cut short
    binary(0x21, 0x21, V4),
    binary(0x21, 0x11, V4 + "00".repeat(PROXY_BINARY_OCTETS_MAX)),
  ];
  for (const bytes of cases) {
    const read = readProxyHeader(bytes);
    assert.deepEqual(read.kind === "read" && read.header, { kind: "bad" }, bytes.toString("latin1"));
  }
});
