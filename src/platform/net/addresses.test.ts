import assert from "node:assert/strict";
import { test } from "node:test";
import { isLoopbackAddress, isPublicAddress, isWithin, literalAddressHost, mayConnect } from "./addresses.ts";

const PUBLIC = ["8.8.8.8", "1.1.1.1", "93.184.216.34", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1"];
const PUBLIC_V6 = [
  "2001:4860:4860::8888",
  "2606:4700:4700::1111",
  "2a00:1450:4001:81b::200e",
  "2003::1",
  "3ffe:ffff::1",
];

const DENIED_V4 = [
  ...["0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "100.127.255.255"],
  ...[
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
  ],
  ...["192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1", "198.19.255.255"],
  ...["198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"],
];
const DENIED_V6 = [
  ...[
    "::",
    "::1",
    "::127.0.0.1",
    "::8.8.8.8",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::ffff:a9fe:a9fe",
    "::ffff:0:10.0.0.1",
  ],
  ...[
    "64:ff9b::7f00:1",
    "64:ff9b::808:808",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:0:7f00:1::",
    "2001:2::1",
    "2001:10::1",
  ],
  ...["2001:20::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::1", "3fff::1", "5f00::1", "fc00::1", "fd00::1"],
  ...["fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "4000::1", "2a00:1450::5efe:10.0.0.1"],
  ...["2a00:1450::200:5efe:7f00:1", "2a00:1450::1%eth0"],
];
const NO_ADDRESS = [
  "",
  "localhost",
  "example.com",
  "127.1",
  "0x7f000001",
  "2130706433",
  "010.8.8.8",
  "8.8.8.8.",
  " 8.8.8.8",
  "[::1]",
  "8.8.8.8/32",
];

test("global unicast addresses are public", () => {
  for (const ip of [...PUBLIC, ...PUBLIC_V6]) assert.equal(isPublicAddress(ip), true, ip);
});

test("private, local, shared, metadata, documentation, multicast and reserved ranges are not", () => {
  for (const ip of DENIED_V4) assert.equal(isPublicAddress(ip), false, ip);
});

test("no IPv6 form that carries an IPv4 address is public, nor are local and special ranges", () => {
  for (const ip of DENIED_V6) assert.equal(isPublicAddress(ip), false, ip);
});

test("only canonical texts of addresses are judged public", () => {
  for (const ip of NO_ADDRESS) assert.equal(isPublicAddress(ip), false, ip);
});

test("loopback is 127.0.0.0/8 and ::1 and nothing else", () => {
  for (const ip of ["127.0.0.1", "127.8.9.10", "::1"]) assert.equal(isLoopbackAddress(ip), true, ip);
  for (const ip of [
    "0.0.0.0",
    "126.1.1.1",
    "::",
    "::ffff:127.0.0.1",
    "::127.0.0.1",
    "10.0.0.1",
    "localhost",
    "::1%lo",
  ]) {
    assert.equal(isLoopbackAddress(ip), false, ip);
  }
});

test("every way to write an address as a host is seen through", () => {
  const cases: [string, string][] = [
    ["127.0.0.1", "127.0.0.1"],
    ["127.1", "127.0.0.1"],
    ["127.0.1", "127.0.0.1"],
    ["0x7f000001", "127.0.0.1"],
    ["0x7f.0.0.1", "127.0.0.1"],
    ["0177.0.0.1", "127.0.0.1"],
    ["017700000001", "127.0.0.1"],
    ["2130706433", "127.0.0.1"],
    ["2852039166", "169.254.169.254"],
    ["①②⑦.0.0.1", "127.0.0.1"],
    ["１２７.０.０.１", "127.0.0.1"],
    ["127。0。0。1", "127.0.0.1"],
    ["%31%32%37.0.0.1", "127.0.0.1"],
    ["127.0.0.1.", "127.0.0.1"],
    ["0", "0.0.0.0"],
    ["[::1]", "::1"],
    ["::1", "::1"],
    ["[::ffff:127.0.0.1]", "::ffff:7f00:1"],
    ["[::ffff:a9fe:a9fe]", "::ffff:a9fe:a9fe"],
    ["[64:ff9b::7f00:1]", "64:ff9b::7f00:1"],
    ["[2001:4860:4860:0:0:0:0:8888]", "2001:4860:4860::8888"],
    ["8.8.8.8", "8.8.8.8"],
  ];
  for (const [host, address] of cases) assert.equal(literalAddressHost(host), address, host);
});

test("localhost names are the loopback address", () => {
  for (const host of [
    "localhost",
    "LOCALHOST",
    "localhost.",
    "a.localhost",
    "localhost.localdomain",
    "ip6-localhost",
  ]) {
    assert.equal(literalAddressHost(host), "127.0.0.1", host);
  }
});

test("names are not literals", () => {
  for (const host of [
    "example.com",
    "127.0.0.1.example.com",
    "localhost.example.com",
    "mylocalhost",
    "1.2.3.4.5",
    "",
    "x".repeat(5_000),
  ]) {
    assert.equal(literalAddressHost(host), null, host.slice(0, 50));
  }
});

test("networks of the operator's own are let through where they are named, whole and exactly", () => {
  const networks = ["10.1.0.0/16", "192.168.7.7", "fd00:7::/32", "nonsense"];
  const inside = { loopback: false, networks };
  for (const ip of ["10.1.255.3", "192.168.7.7", "fd00:7:1::2", "::ffff:10.1.0.9"]) {
    assert.deepEqual([isWithin(ip, networks), mayConnect(ip, inside)], [true, true], ip);
  }
  for (const ip of ["10.2.0.1", "192.168.7.8", "fd00:8::1", "127.0.0.1", "169.254.169.254", "nonsense", ""]) {
    assert.deepEqual([isWithin(ip, networks), mayConnect(ip, inside)], [false, false], ip);
  }
});

test("a stranger's word leads to public addresses only, and in tests to this machine too", () => {
  for (const ip of ["127.0.0.1", "127.9.9.9", "::1"]) {
    assert.equal(mayConnect(ip, { loopback: true }), true, ip);
    assert.equal(mayConnect(ip, { loopback: false }), false, ip);
  }
  for (const ip of ["10.0.0.1", "127.0.0.1.example", "::ffff:127.0.0.1"])
    assert.equal(mayConnect(ip, { loopback: true }), false, ip);
  assert.equal(mayConnect("8.8.8.8", { loopback: false }), true);
});
