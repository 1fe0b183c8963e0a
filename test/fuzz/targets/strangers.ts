// Where strangers may make us go, and what they hand back to us: addresses and URLs against the deny-table, signatures of
// webhooks, tokens in return paths and links, rewritten senders.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { BlockList, isIP } from "node:net";
import Stripe from "stripe";
import { parseAddress } from "../../../src/mail/address.ts";
import { makeToken, readToken } from "../../../src/mail/bounce-token.ts";
import { readSrs, writeSrs } from "../../../src/mail/srs.ts";
import { makeUnsubscribeToken, readUnsubscribeToken } from "../../../src/mail/unsubscribe-token.ts";
import { isPublicAddress, literalAddressHost } from "../../../src/platform/net/addresses.ts";
import { checkUrl } from "../../../src/platform/net/safe-fetch.ts";
import { signatureHeader } from "../../../src/webhooks/sign.ts";
import { type Draw, drawFrom, randomBytes } from "../draw.ts";
import type { Target } from "../target.ts";

// Two lists: in one, the subnets of IPv6 cover IPv4 addresses too, as mapped ones.
const INNER = { ipv4: new BlockList(), ipv6: new BlockList() };
const isInner = (ip: string): boolean => {
  const family = isIP(ip) === 4 ? "ipv4" : "ipv6";
  return INNER[family].check(ip, family);
};
for (const [network, bits] of [
  ...([
    ["0.0.0.0", 8],
    ["10.0.0.0", 8],
    ["100.64.0.0", 10],
    ["127.0.0.0", 8],
    ["169.254.0.0", 16],
    ["172.16.0.0", 12],
  ] as const),
  ...([
    ["192.0.0.0", 24],
    ["192.0.2.0", 24],
    ["192.168.0.0", 16],
    ["198.18.0.0", 15],
    ["198.51.100.0", 24],
  ] as const),
  ...([
    ["203.0.113.0", 24],
    ["224.0.0.0", 4],
    ["240.0.0.0", 4],
    ["168.63.129.16", 32],
  ] as const),
]) {
  INNER.ipv4.addSubnet(network, bits, "ipv4");
}
for (const [network, bits] of [
  ...([
    ["::", 3],
    ["fc00::", 7],
    ["fe80::", 10],
    ["ff00::", 8],
    ["2002::", 16],
    ["64:ff9b::", 96],
    ["2001::", 32],
    ["2001:db8::", 32],
  ] as const),
]) {
  INNER.ipv6.addSubnet(network, bits, "ipv6");
}

const ipDeny: Target = {
  name: "ip-deny",
  holds: "no address is public that Node's own block list of the special-purpose registries knows",
  seeds: { lines: "ip-deny.jsonl" },
  words: [
    "127.",
    "10.",
    "169.254.169.254",
    "::ffff:",
    "fe80::",
    "%eth0",
    "2002:7f00:1::",
    "0x7f",
    "017700000001",
    "64:ff9b::",
  ],
  bytes_max: 512,
  generate: (chance) =>
    Buffer.from(
      chance.between(0, 1) === 0
        ? Array.from({ length: 4 }, () => chance.between(0, 255)).join(".")
        : Array.from({ length: 8 }, () => chance.pick([0, 0, 0xffff, chance.between(0, 0xffff)]).toString(16)).join(
            ":",
          ),
    ),
  check(input) {
    const text = input.toString("utf8");
    const isPublic = isPublicAddress(text);
    if (!isPublic) return `no ${isIP(text)}`;
    assert.notEqual(isIP(text), 0, "what is no address is called public");
    assert.ok(!isInner(text), `${text} is called public`);
    return `yes ${isIP(text)}`;
  },
};

const url: Target = {
  name: "url-check",
  holds: "a URL that is accepted is https, without a user, and its host is no inner address in any spelling",
  seeds: { lines: "url-check.jsonl" },
  words: [
    "https://",
    "http://",
    "127.0.0.1",
    "127.1",
    "0x7f000001",
    "2130706433",
    "[::1]",
    "[::ffff:7f00:1]",
    "@",
    "localhost",
    "%31",
    "。",
    "①",
    ":25",
    "#",
    "\\",
    ".",
  ],
  bytes_max: 4_096,
  check(input) {
    const text = input.toString("utf8");
    const refusal = checkUrl(text, { loopback: false });
    const parsed = URL.parse(text);
    if (refusal !== null) {
      assert.ok(refusal.endsWith(".") && refusal.length <= 200);
      return refusal.slice(0, 40);
    }
    assert.ok(parsed !== null && parsed.protocol === "https:" && parsed.username === "" && parsed.password === "");
    const host = parsed.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
    assert.equal(literalAddressHost(parsed.hostname), isIP(host) === 0 ? null : literalAddressHost(host));
    if (isIP(host) !== 0) assert.ok(!isInner(host), `${host} is let through`);
    assert.ok(!/^(?:.+\.)?localhost$/i.test(host));
    return isIP(host) === 0 ? "name" : "address";
  },
};

const stripe = new Stripe("sk_test_fuzz");

const webhookSignature: Target = {
  name: "webhook-signature",
  holds:
    "what we sign, Stripe's verifier takes for each secret of a rotation, and not with a changed body, time or secret",
  seeds: { lines: "webhook-signature.jsonl", shared: ["webhook-signature/*"] },
  bytes_max: 16_384,
  check(input) {
    // Stripe's verifier takes no empty body.
    const body = Buffer.from(input.toString("utf8") || "{}");
    const secrets = [`whsec_${"a".repeat(43)}`, `whsec_${body.toString("hex").slice(0, 43)}`];
    const at = 1_790_000_000;
    const header = signatureHeader(secrets, at, body);
    assert.match(header, /^t=\d+,v1=[0-9a-f]{64},v1=[0-9a-f]{64}$/);
    const verify = (payload: string, secret: string, given = header) =>
      stripe.webhooks.signature!.verifyHeader(payload, given, secret, 0, undefined, at * 1_000);
    for (const secret of secrets) assert.ok(verify(body.toString("utf8"), secret));
    assert.throws(() => verify(`${body.toString("utf8")} `, secrets[0]!));
    assert.throws(() => verify(body.toString("utf8"), "whsec_other"));
    assert.throws(() => verify(body.toString("utf8"), secrets[0]!, header.replace(`t=${at}`, `t=${at + 1}`)));
  },
};

const mac = (text: string) => createHmac("sha256", "fuzz").update(text).digest();

function drawUuid(draw: Draw): string {
  const hex = Array.from({ length: 32 }, () => draw.between(0, 15).toString(16)).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

const bounceToken: Target = {
  name: "bounce-token",
  holds: "a token names what it was made for in any case, and no other text of any kind names anything",
  seeds: { lines: "tokens.jsonl" },
  bytes_max: 1_024,
  generate: (chance) => randomBytes(chance, 64),
  check(input) {
    assert.equal(readToken(input.toString("latin1"), mac), null, "a text that nobody made is a token");
    const draw = drawFrom(input);
    const [id, position] = [drawUuid(draw), draw.between(0, 255)];
    const token = makeToken(id, position, mac);
    assert.match(token, /^[a-z2-7]{44}$/);
    assert.deepEqual(readToken(token.toUpperCase(), mac), { message_id: id, position });
    const at = draw.between(0, 42);
    const changed = `${token.slice(0, at)}${token[at] === "a" ? "b" : "a"}${token.slice(at + 1)}`;
    assert.equal(readToken(changed, mac), null, "a changed token is read");
  },
};

const unsubscribeToken: Target = {
  name: "unsubscribe-token",
  holds: "a link's token comes back whole, and a changed one not at all",
  seeds: { lines: "tokens.jsonl" },
  bytes_max: 2_048,
  generate: (chance) => randomBytes(chance, 256),
  check(input) {
    assert.equal(readUnsubscribeToken(input.toString("latin1"), mac), null);
    const draw = drawFrom(input);
    const [org_id, message_id, domain_id] = [drawUuid(draw), drawUuid(draw), drawUuid(draw)];
    const email = draw.text(60).toWellFormed();
    const list = draw.text(30).toWellFormed() || null;
    const leave = { org_id, message_id, domain_id, email, list };
    const token = makeUnsubscribeToken(leave, mac);
    assert.deepEqual(readUnsubscribeToken(token, mac), leave);
    const bytes = Buffer.from(token, "base64url");
    const at = draw.between(0, bytes.length - 1);
    bytes[at] = bytes[at]! ^ (1 << draw.between(0, 7));
    assert.equal(readUnsubscribeToken(bytes.toString("base64url"), mac), null, "a changed token is read");
  },
};

const srs: Target = {
  name: "srs",
  holds: "a rewritten sender comes back, in any case, for ten days; a changed or made-up one does not",
  seeds: { lines: "srs.jsonl" },
  words: ["SRS0=", "SRS1=", "SRS0+", "=", "@", "example.com", "+", "-", '"'],
  bytes_max: 512,
  check(input) {
    const now_ms = 1_790_000_000_000;
    const key = { mac, now_ms };
    const given = parseAddress(input.toString("utf8"));
    if (!given.ok) return "no address";
    const { email: sender, local } = given.address;
    assert.notEqual(readSrs(local, key).kind, "sender", "a sender that nobody rewrote is read");
    const written = writeSrs(sender, key);
    if (written === null) return "null";
    assert.ok(Buffer.byteLength(written) <= 64);
    const back = readSrs(written, key);
    assert.equal(back.kind, "sender");
    if (written.startsWith("SRS0")) assert.deepEqual(back, { kind: "sender", sender });
    else
      assert.ok(back.kind === "sender" && back.sender.startsWith("SRS0"), "a second rewriting leads to no first one");
    assert.equal(readSrs(written, { mac, now_ms: now_ms + 12 * 86_400_000 }).kind, "aged");
    assert.equal(readSrs(`${written}x`, key).kind, "forged");
    return written.slice(0, 4);
  },
};

export const STRANGER_TARGETS: readonly Target[] = [
  ...[ipDeny, url, webhookSignature, bounceToken, unsubscribeToken, srs],
];
