// Which mails a rule holds for, what is wrong with a rule, and that none of them holds up the process.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { compileTree, type Facts, holds, readConditions, readTree, trace } from "./conditions.ts";

const PATTERNS = new URL("../../../../../shared/data/regex-redos/patterns.json", import.meta.url);
const pause = () => turn();

const facts: Facts = {
  sender: ["Anna@Bücher.example", "bob@b.example"],
  sender_domain: ["Bücher.example", "b.example"],
  envelope_sender: ["bounce@b.example"],
  recipient: ["desk+eu@in.example"],
  recipient_tag: ["eu"],
  subject: ["Invoice 42 for May"],
  headers: [
    { name: "X-Kind", value: "order" },
    { name: "x-kind", value: "Refund" },
    { name: "List-Id", value: "" },
  ],
  spf: "pass",
  dkim: "fail",
  dmarc: "none",
  spam_score: 4.5,
  size: 2_000,
  has_attachments: true,
  auto_submitted: false,
};
const bare: Facts = { ...facts, recipient_tag: [], subject: [], envelope_sender: [""], headers: [], spam_score: null };

async function asked(given: unknown, about: Facts = facts): Promise<boolean> {
  const read = readTree(given, "match");
  assert.ok(read.ok, JSON.stringify(read));
  const compiled = compileTree(read.tree);
  const answer = await holds(compiled, about, pause);
  assert.equal((await trace(compiled, about, pause)).matched, answer);
  return answer;
}
const leaf = (field: string, comparator: string, value?: unknown, header_name?: string) => ({
  field,
  comparator,
  ...(value === undefined ? {} : { value }),
  ...(header_name === undefined ? {} : { header_name }),
});

const TRUE = [
  leaf("sender", "equals", "anna@bücher.example"),
  leaf("sender", "equals", "BOB@b.example"),
  leaf("sender_domain", "equals", "xn--bcher-kva.example"),
  leaf("sender_domain", "in", ["a.example", "B.example"]),
  leaf("sender_domain", "not_equals", "c.example"),
  leaf("envelope_sender", "starts_with", "Bounce@"),
  leaf("recipient", "ends_with", "@in.example"),
  leaf("recipient_tag", "equals", "EU"),
  leaf("subject", "contains", "invoice"),
  leaf("subject", "not_contains", "refund"),
  leaf("subject", "matches", "^Invoice \\d+"),
  leaf("header", "equals", "refund", "X-KIND"),
  leaf("header", "exists", true, "x-kind"),
  leaf("header", "exists", false, "x-other"),
  leaf("header", "exists", false, "list-id"),
  leaf("header", "matches", "^(order|none)$", "x-kind"),
  leaf("spf", "equals", "pass"),
  leaf("dkim", "not_equals", "pass"),
  leaf("dmarc", "in", ["none", "pass"]),
  leaf("spam_score", "gt", 4),
  leaf("spam_score", "gte", 4.5),
  leaf("spam_score", "lt", 5),
  leaf("spam_score", "lte", 4.5),
  leaf("spam_score", "exists"),
  leaf("size", "equals", 2_000),
  leaf("size", "not_equals", 1),
  leaf("has_attachments", "equals", true),
  leaf("auto_submitted", "not_equals", true),
  leaf("spf", "matches", "^(pass|neutral)$"),
  leaf("dkim", "contains", "ai"),
  leaf("dkim", "not_contains", "pass"),
  leaf("dkim", "starts_with", "F"),
  leaf("spf", "ends_with", "ss"),
  leaf("dkim", "exists"),
  leaf("dmarc", "exists", false),
  leaf("has_attachments", "exists"),
  leaf("auto_submitted", "exists", false),
];
const FALSE = [
  leaf("sender", "not_equals", "bob@b.example"),
  leaf("sender_domain", "equals", "example"),
  leaf("subject", "matches", "invoice"),
  leaf("subject", "equals", "Invoice"),
  leaf("header", "not_equals", "order", "x-kind"),
  leaf("header", "contains", "x", "x-other"),
  leaf("spf", "in", ["fail", "softfail"]),
  leaf("size", "lt", 2_000),
  leaf("has_attachments", "equals", false),
  leaf("spf", "matches", "^(fail|softfail)$"),
  leaf("spf", "contains", "fail"),
  leaf("dmarc", "exists", true),
  leaf("has_attachments", "exists", false),
  leaf("auto_submitted", "exists", true),
];

test("every field and comparator does what it says", async () => {
  for (const one of TRUE) assert.equal(await asked(one), true, JSON.stringify(one));
  for (const one of FALSE) assert.equal(await asked(one), false, JSON.stringify(one));
});

test("what is missing equals nothing, is not anything, and does not exist", async () => {
  assert.equal(await asked(leaf("recipient_tag", "exists", false), bare), true);
  assert.equal(await asked(leaf("recipient_tag", "not_equals", "eu"), bare), true);
  assert.equal(await asked(leaf("subject", "equals", ""), bare), false);
  assert.equal(await asked(leaf("envelope_sender", "equals", ""), bare), true);
  assert.equal(await asked(leaf("envelope_sender", "exists", true), bare), false);
  assert.equal(await asked(leaf("spam_score", "lt", 100), bare), false);
  assert.equal(await asked(leaf("spam_score", "exists", false), bare), true);
});

test("a part of a domain is found in it as people write it and as DNS has it", async () => {
  const about = { ...facts, sender_domain: ["163.com", "bücher.example", "xn--mnchen-3ya.example"] };
  const only = (domain: string) => ({ ...facts, sender_domain: [domain] });
  for (const [comparator, value, domain] of [
    ["starts_with", "163", "163.com"],
    ["contains", "163", "mail.163.com"],
    ["starts_with", "büch", "bücher.example"],
    ["starts_with", "BU\u0308CH", "bücher.example"],
    ["starts_with", "xn--bcher", "bücher.example"],
    ["contains", "cher.", "BÜCHER.example"],
    ["ends_with", "chen.example", "xn--mnchen-3ya.example"],
    ["starts_with", "mün", "xn--mnchen-3ya.example"],
    ["ends_with", ".Example", "a.example"],
  ] as const) {
    assert.equal(await asked(leaf("sender_domain", comparator, value), only(domain)), true, `${comparator} ${value}`);
  }
  assert.equal(await asked(leaf("sender_domain", "not_contains", "mün"), about), false);
  assert.equal(await asked(leaf("sender_domain", "not_contains", "0.0"), about), true);
  assert.equal(await asked(leaf("sender_domain", "starts_with", "0.0.0.163"), about), false);
});

test("an address is one in both forms of its domain; its local part is as it was", async () => {
  const ours = {
    ...facts,
    sender: ["Jörg@Bücher.example"],
    envelope_sender: ["jörg@xn--bcher-kva.example"],
    recipient: [""],
  };
  for (const field of ["sender", "envelope_sender"]) {
    for (const address of ["jörg@bücher.example", "JÖRG@xn--bcher-kva.example", "jo\u0308rg@BÜCHER.example"]) {
      assert.equal(await asked(leaf(field, "equals", address), ours), true, `${field} ${address}`);
      assert.equal(await asked(leaf(field, "in", ["a@b.example", address]), ours), true, `${field} ${address}`);
      assert.equal(await asked(leaf(field, "not_equals", address), ours), false, `${field} ${address}`);
    }
    for (const address of ["jorg@bücher.example", "bücher.example", "jörg@", "@bücher.example", ""]) {
      assert.equal(await asked(leaf(field, "equals", address), ours), false, `${field} ${address}`);
    }
  }
  assert.equal(await asked(leaf("recipient", "equals", "a@b.example"), ours), false);
});

test("all, any and not nest three deep", async () => {
  const yes = leaf("spf", "equals", "pass");
  const no = leaf("spf", "equals", "fail");
  assert.equal(await asked({ all: [yes, { any: [no, { not: no }] }] }), true);
  assert.equal(await asked({ all: [yes, { any: [no, { not: yes }] }] }), false);
  assert.equal(await asked({ not: { all: [yes, no] } }), true);
});

test("a flat list holds when all its conditions do", async () => {
  const both = readConditions([leaf("spf", "equals", "pass"), leaf("dkim", "equals", "fail")], "conditions");
  assert.ok(both.ok);
  assert.equal(await holds(compileTree(both.tree), facts, pause), true);
  assert.equal(await holds(compileTree(both.tree), { ...facts, dkim: "pass" }, pause), false);
});

test("a trace tells each condition, its path and what it found", async () => {
  const read = readTree({ any: [leaf("header", "equals", "x", "x-kind"), { not: leaf("size", "gt", 1) }] }, "match");
  assert.ok(read.ok);
  assert.deepEqual(await trace(compileTree(read.tree), facts, pause), {
    matched: false,
    steps: [
      { ...leaf("header", "equals", "x", "x-kind"), path: "match.any[0]", found: ["order", "Refund"], matched: false },
      { ...leaf("size", "gt", 1), path: "match.any[1].not", found: [2_000], matched: true },
    ],
  });
});

test("what is wrong is named by its path", () => {
  const ok = leaf("spf", "equals", "pass");
  const long = "x".repeat(257);
  const cases: [unknown, string, RegExp][] = [
    [null, "match", /must be a condition/],
    [[], "match", /must be a condition/],
    [{}, "match.field", /must be one of sender/],
    [{ all: [] }, "match.all", /at least one/],
    [{ all: {} }, "match.all", /must be a list/],
    [{ all: [ok], any: [ok] }, "match.any", /cannot stand beside 'all'/],
    [{ all: [ok, { ...ok, colour: 1 }] }, "match.all[1].colour", /unknown/],
    [{ all: [ok, leaf("spf", "equals", "yes")] }, "match.all[1].value", /must be one of none/],
    [{ not: leaf("body", "equals", "x") }, "match.not.field", /must be one of/],
    [leaf("size", "contains", "x"), "match.comparator", /for size/],
    [leaf("dkim", "in", ["pass", "good"]), "match.value[1]", /must be one of none/],
    [leaf("spf", "matches", "("), "match.value", /./],
    [leaf("dkim", "gt", 1), "match.comparator", /for dkim/],
    [leaf("has_attachments", "contains", "x"), "match.comparator", /for has_attachments/],
    [leaf("size", "gt", "1"), "match.value", /a number/],
    [leaf("spam_score", "gt", Number.NaN), "match.value", /a number/],
    [leaf("has_attachments", "equals", "true"), "match.value", /true or false/],
    [leaf("subject", "exists", "yes"), "match.value", /true or false/],
    [leaf("subject", "equals"), "match.value", /a text/],
    [leaf("subject", "contains", ""), "match.value", /empty/],
    [leaf("subject", "equals", long), "match.value", /256/],
    [leaf("subject", "matches", long), "match.value", /256/],
    [leaf("subject", "in", []), "match.value", /1 to 100/],
    [leaf("subject", "in", ["a", 1]), "match.value[1]", /a text/],
    [leaf("subject", "matches", "(a"), "match.value", /not a valid RE2/],
    [leaf("subject", "matches", "(a)\\1"), "match.value", /not a valid RE2/],
    [leaf("subject", "matches", "((a{1,30}){1,30}){2}b"), "match.value", /too large|not a valid/],
    [leaf("header", "exists", true), "match.header_name", /name of a header/],
    [leaf("header", "exists", true, "a b"), "match.header_name", /name of a header/],
    [leaf("subject", "exists", true, "x"), "match.header_name", /header only/],
    [{ not: { not: { not: { not: ok } } } }, "match.not.not.not", /deeper than 3/],
    [{ any: Array.from({ length: 21 }, () => ok) }, "match.any[20]", /at most 20/],
    [JSON.parse('{"__proto__":1}'), "match.__proto__", /unknown/],
  ];
  for (const [given, field, problem] of cases) {
    const read = readTree(given, "match");
    assert.ok(!read.ok, JSON.stringify(given));
    assert.equal(read.field, field);
    assert.match(read.problem, problem);
  }
  const flat = readConditions([ok, { all: [ok] }], "conditions");
  assert.ok(!flat.ok && flat.field === "conditions[1]");
});

test("a text is looked at up to a limit, and its cut end is no end to an expression", async () => {
  const asked = async (pattern: string, subject: string) => {
    const read = readTree(leaf("subject", "matches", pattern), "match");
    assert.ok(read.ok, pattern);
    return holds(compileTree(read.tree), { ...facts, subject: [subject] }, turn);
  };
  const whole = "x".repeat(2_048);
  for (const [pattern, text, want] of [
    ["x$", whole, true],
    ["x$", `${whole}x`, false],
    ["^x*$", `${whole}xxx`, false],
    ["x\\z", `${whole}x`, false],
    ["(?s).$|never", `${whole}y`, false],
    ["(?m)x$", `${whole}\ny`, true],
    ["(?m)x$", `${whole}xy`, false],
    ["^x{500}", `${whole}y`, true],
    ["x*", `${whole}y`, true],
    ["xx|zz$", `${whole}y`, true],
    ["\\Qxx", `${whole}y`, true],
    ["y", `${whole}y`, false],
    ["x\\b", `${whole} y`, true],
    ["x\\b", `${whole}xy`, false],
  ] as const) {
    assert.equal(await asked(pattern, text), want, `${pattern} ${text.length}`);
  }
});

test("no expression holds up the process, and harmless ones match as in JavaScript", async (t) => {
  if (!existsSync(PATTERNS)) return t.skip("the shared test data are not there");
  const given: Case[] = JSON.parse(readFileSync(PATTERNS, "utf8"));
  // The first rounds also compile and collect, and a busy machine slows some; a step that is too long is so in every round.
  const rounds: number[] = [];
  while (rounds.length < 12 && Math.min(...rounds) >= 50) rounds.push(await longestStep([...given, ...OWN]));
  assert.ok(Math.min(...rounds) < 50, `the process was held up for ${rounds.map(Math.round)} ms`);
});

/** The most processor time between two turns of the event loop, in milliseconds; that of others does not count. */
async function longestStep(cases: readonly Case[]): Promise<number> {
  let longest = 0;
  let accepted = 0;
  let started = process.threadCpuUsage();
  const breathe = async () => {
    const { user, system } = process.threadCpuUsage(started);
    longest = Math.max(longest, (user + system) / 1_000);
    await turn();
    started = process.threadCpuUsage();
  };
  for (const { pattern, set, attack_input } of cases) {
    await breathe();
    const read = readTree(leaf("subject", "matches", pattern), "match");
    if (set === "real") assert.ok(read.ok, pattern);
    if (!read.ok) continue;
    accepted += 1;
    const compiled = compileTree(read.tree);
    const attack = attack_input || "a";
    const long = attack.repeat(Math.ceil(4_096 / attack.length));
    await holds(compiled, { ...facts, subject: [attack, long, MIXED] }, breathe);
    if (set !== "real") continue;
    for (const text of [attack, "a", "", "anna@b.example", "https://www.b.example/x?y=1", "2026-11-20"]) {
      const isMatch = await holds(compiled, { ...facts, subject: [text] }, breathe);
      assert.equal(isMatch, new RegExp(pattern).test(text), pattern);
    }
  }
  await breathe();
  assert.ok(accepted >= 30, `only ${accepted} accepted`);
  return longest;
}

type Case = { pattern: string; set: string; attack_input: string | null };

/** Large once written out, or many states at once. */
const OWN: Case[] = ["(?:a?){200}a{200}", "[ab]*a[ab]{20}[cd]", "(([ab]*a){1,3}[ab]{300})[cd]", "(.*a){120}[cd]"].map(
  (pattern) => ({ pattern, set: "own", attack_input: "ab" }),
);

/** Letters without a period, the same each time. */
const MIXED = (() => {
  let state = 1;
  const letter = () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state >> 16) & 1 ? "a" : "b";
  };
  return Array.from({ length: 4_096 }, letter).join("");
})();
