// What customers give us: templates, routing rules, patterns, URLs, JSON; and what strangers hand back: tokens, signatures.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { BlockList, isIP } from "node:net";
import Fastify from "fastify";
import Stripe from "stripe";
import { readJsonBodies } from "../../../src/api/json-body.ts";
import { parseAddress } from "../../../src/mail/address.ts";
import { makeToken, readToken } from "../../../src/mail/bounce-token.ts";
import { compilePattern } from "../../../src/mail/glob-pattern.ts";
import { compileExpression } from "../../../src/mail/rules/expression.ts";
import { LEAVES_MAX, readConditions, readTree } from "../../../src/mail/rules/read-tree.ts";
import { compileTree, holds, trace } from "../../../src/mail/rules/rules.ts";
import { COMPARATORS, type Facts, FIELDS } from "../../../src/mail/rules/types.ts";
import { readSrs, writeSrs } from "../../../src/mail/srs.ts";
import { OUTPUT_BYTES_MAX } from "../../../src/mail/template/nodes.ts";
import { parseTemplate } from "../../../src/mail/template/parse.ts";
import { renderTemplate } from "../../../src/mail/template/render.ts";
import { makeUnsubscribeToken, readUnsubscribeToken } from "../../../src/mail/unsubscribe-token.ts";
import { isPublicAddress, literalAddressHost } from "../../../src/platform/addresses.ts";
import { Refusal } from "../../../src/platform/refusal.ts";
import { checkUrl } from "../../../src/platform/safe-fetch.ts";
import { signatureHeader } from "../../../src/webhooks/sign.ts";
import { type Draw, drawFrom, randomBytes } from "../draw.ts";
import { assertStorable, assertUnpolluted } from "../invariants.ts";
import type { Target } from "../target.ts";

const MARK = "<zqx7&\"'>";
const VARIABLES = {
  ...{ name: MARK, empty: "", zero: 0, yes: true, no: false, nothing: null, user: { name: MARK, age: 30 } },
  ...{
    items: [
      { name: MARK, qty: 1 },
      { name: "b", items: [1, 2] },
    ],
    words: ["a", MARK],
    deep: { a: { b: { c: MARK } } },
  },
};
const TEMPLATE_WORDS = [
  ...[
    "{{name}}",
    "{{{name}}}",
    "{{&name}}",
    "{{#if yes}}",
    "{{else}}",
    "{{/if}}",
    "{{#each items}}",
    "{{/each}}",
    "{{#unless no}}",
    "{{/unless}}",
  ],
  ...[
    "{{this}}",
    "{{../name}}",
    "{{@index}}",
    "{{@root.name}}",
    "{{user.name}}",
    "{{constructor}}",
    "{{__proto__}}",
    "{{items.[0].name}}",
    "{{items.length}}",
  ],
  ...[
    "{{! c }}",
    "{{!-- c --}}",
    "{{~name~}}",
    "\\{{name}}",
    '{{default name "x"}}',
    "{{toString}}",
    "{{#each words}}",
    "{{lookup . 'constructor'}}",
    "{{#with user}}",
  ],
];

const template: Target = {
  name: "template",
  holds:
    "a template is refused with a place or renders within its limits, escapes, reaches no prototype, and twice the same",
  seeds: { lines: "template.jsonl" },
  words: TEMPLATE_WORDS,
  bytes_max: 64 * 1_024,
  check(input) {
    const source = input.toString("utf8");
    const parsed = parseTemplate(source);
    if (!parsed.ok) {
      assert.ok(parsed.line >= 1 && parsed.column >= 1 && parsed.message.length <= 300, parsed.message);
      return parsed.message.replace(/'.*?'/g, "").slice(0, 40);
    }
    const render = () => renderTemplate(parsed.template, VARIABLES, { escape: "html", now: () => 0 });
    const rendered = render();
    assert.deepEqual(render(), rendered);
    if (!rendered.ok) return rendered.reason;
    assert.ok(Buffer.byteLength(rendered.text) <= OUTPUT_BYTES_MAX);
    const isRaw = /\{\{~?\{|\{\{~?&/.test(source) || source.includes(MARK);
    if (!isRaw) assert.ok(!rendered.text.includes("<zqx7"), "a value was not escaped");
    if (!/native|function|object/.test(source)) assert.doesNotMatch(rendered.text, /native code|\[object|function/);
    assertUnpolluted();
    return `${parsed.template.tags > 0} ${parsed.template.reads_all} ${Math.min(4, parsed.template.variables.length)}`;
  },
};

const FACTS: Facts = {
  ...{
    sender: ["alice@example.com"],
    sender_domain: ["example.com"],
    envelope_sender: ["b@bounce.example"],
    recipient: ["in@shop.example"],
  },
  ...{
    recipient_tag: ["x"],
    subject: [`Re: Ünïcode ${"a".repeat(200)}`],
    headers: [{ name: "X-A", value: "aaaaaaaaaaaaaaaaaaaaaaaa!" }],
  },
  ...{
    spf: "pass",
    dkim: "fail",
    dmarc: "none",
    spam_score: 3.5,
    size: 1_000,
    has_attachments: true,
    auto_submitted: false,
  },
};
const RULE_WORDS = [
  ...[
    '{"all":[',
    '{"any":[',
    '{"not":',
    "]}",
    '{"field":"subject","comparator":"contains","value":"a"}',
    '"header_name":"x-a"',
    '"matches"',
    '"(a+)+$"',
  ],
  ...[
    '{"field":"header","header_name":"X-A","comparator":"matches","value":"(a|a)*b"}',
    '"__proto__":',
    "null",
    "1e999",
    '"in","value":["a"]',
  ],
  ...FIELDS.map((field) => `"${field}"`),
  ...COMPARATORS.map((comparator) => `"${comparator}"`),
];

function json(input: Buffer): { value: unknown } | null {
  try {
    // RFC 8259 §8.1: a byte order mark may be passed over.
    return { value: JSON.parse(input.toString("utf8").replace(/^\ufeff/, "")) };
  } catch {
    return null;
  }
}

const rules: Target = {
  name: "rules",
  holds:
    "any JSON is refused with a path or is a tree whose answer is that of its trace, and the opposite of its negation",
  seeds: { lines: "rules.jsonl" },
  words: RULE_WORDS,
  bytes_max: 16_384,
  async check(input) {
    const given = json(input);
    if (given === null) return "no JSON";
    const read = Array.isArray(given.value) ? readConditions(given.value, "match") : readTree(given.value, "match");
    if (!read.ok) {
      assert.ok(read.field.startsWith("match") && read.field.length <= 200, read.field);
      return read.problem.slice(0, 30);
    }
    const pause = async () => undefined;
    const compiled = compileTree(read.tree);
    const answer = await holds(compiled, FACTS, pause);
    const { matched, steps } = await trace(compiled, FACTS, pause);
    assert.equal(matched, answer, "the trace says otherwise");
    assert.ok(steps.length <= LEAVES_MAX);
    assert.equal(await holds(compileTree({ not: read.tree }), FACTS, pause), !answer);
    assertUnpolluted();
    return `${answer} ${steps.map(({ field, comparator }) => `${field} ${comparator}`).join()}`.slice(0, 80);
  },
};

const LONG = `${"a".repeat(2_040)}!`;

const ruleExpression: Target = {
  name: "rule-expression",
  holds: "an expression is refused or matched in linear time, and agrees with JavaScript on plain ones",
  seeds: { lines: "rule-expression.jsonl", shared: ["regex-redos/*"] },
  words: [
    "(",
    ")",
    "*",
    "+",
    "?",
    "{1,64}",
    "{1000}",
    "|",
    "[a-z]",
    "\\w",
    "(?i)",
    "^",
    "$",
    ".",
    "(a+)+",
    "(?:",
    "\\pL",
    "[^",
    "\\1",
    "(?=a)",
  ],
  bytes_max: 256,
  check(input) {
    const source = input.toString("utf8");
    const compiled = compileExpression(source);
    if (compiled.kind === "problem") return compiled.problem.slice(0, 50);
    compiled.expression.matches(LONG);
    const isPlain = /^[a-z0-9 ]*(?:[.?*+]?[a-z0-9 ])*$/.test(source) && source.length < 30;
    for (const text of ["alice@example.com", "hello world", ""]) {
      if (isPlain) assert.equal(compiled.expression.matches(text), new RegExp(source, "u").test(text));
    }
    return `${compiled.expression.matches(LONG)} ${isPlain}`;
  },
};

/** By definition, in a table of prefixes. */
function globMatches(glob: string, text: string): boolean {
  const [wanted, given] = [[...glob.toLowerCase()], [...text.toLowerCase()]];
  let row = [true, ...given.map(() => false)];
  for (const one of wanted) {
    const next = [one === "*" && row[0] === true];
    for (let at = 0; at < given.length; at += 1) {
      const step = one === "*" ? row[at + 1] || next[at] : row[at] && (one === "?" || one === given[at]);
      next.push(step === true);
    }
    row = next;
  }
  return row.at(-1) === true;
}

const glob: Target = {
  name: "glob",
  holds: "a glob matches what its definition says, and expressions behind re: take no longer than their limit",
  seeds: { lines: "glob.jsonl" },
  words: ["*", "?", "**", "@example.com", "re:", "+", ".", "é", "İ", "😀", "(a*)*", "{255}"],
  bytes_max: 512,
  check(input) {
    const [pattern = "", text = ""] = input.toString("utf8").split("\n");
    const compiled = compilePattern(pattern);
    if (compiled.kind === "problem") return compiled.problem.slice(0, 30);
    const answer = compiled.pattern.matches(text);
    compiled.pattern.matches(LONG);
    if (!pattern.startsWith("re:")) assert.equal(answer, globMatches(pattern, text));
    return `${answer} ${pattern.startsWith("re:")}`;
  },
};

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
    const refusal = checkUrl(text, { allowLoopback: false });
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

const app = Fastify({ bodyLimit: 1024 * 1024 });
readJsonBodies(app);
app.setErrorHandler((error, _request, answer) => {
  if (!(error instanceof Refusal)) throw error;
  return answer.code(400).send({ error: error.kind });
});
app.post("/", async (request) => ({ body: request.body ?? null }));

const jsonBody: Target = {
  name: "json-body",
  holds:
    "a body is 400, or exactly what JSON.parse reads, no deeper than 32 and without a key that reaches a prototype",
  seeds: { lines: "json-body.jsonl" },
  words: [
    '"__proto__":{"polluted":true}',
    '"constructor":{"prototype":{}}',
    "[[[[[[[[",
    "]]]]]]]]",
    "{",
    "}",
    "\\u0000",
    "\\ud800",
    '"\\u005f_proto__":1',
    "1e400",
    "\ufeff",
  ],
  bytes_max: 32_768,
  async check(input) {
    const reply = await app.inject({
      method: "POST",
      url: "/",
      payload: input,
      headers: { "content-type": "application/json" },
    });
    assertUnpolluted();
    if (reply.statusCode !== 200) {
      assert.equal(reply.statusCode, 400, reply.body);
      return `400 ${reply.json().error}`;
    }
    if (input.length === 0) return "empty";
    const wanted = json(input);
    assert.ok(wanted !== null, "what is no JSON was taken");
    assert.deepEqual(reply.json().body, JSON.parse(JSON.stringify(wanted.value)));
    const text = JSON.stringify(wanted.value) ?? "";
    assert.doesNotMatch(text, /"__proto__":/);
    assertStorable("body", text.replace(/\\u0000/g, "\0"));
    return `200 ${typeof wanted.value}`;
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

export const CUSTOMER_TARGETS: readonly Target[] = [
  ...[
    template,
    rules,
    ruleExpression,
    glob,
    ipDeny,
    url,
    webhookSignature,
    jsonBody,
    bounceToken,
    unsubscribeToken,
    srs,
  ],
];
