// npm run masks -- [--json] [--seed N: other dice each run without it] [--attacks N] [--innocent N] [--pairs N] [--kinds K,…]
// Masked addresses as an attacker tries them, from classes with other dice for each seed, without a server: replies that hold
// the mailbox anywhere must not show it, ordinary replies must leave, and the answers to a list of guesses with the mailbox on
// it and to one without must be the same, whatever happens to the mail on its way (`--kinds`: some of what may happen). Ends with 1
// where the address was shown, two answers differ, or too few leave.
import PostalMime from "postal-mime";
import { attackOf } from "../../src/masked/rewrite/attack-classes.fixture.ts";
import { SHAPES } from "../../src/masked/rewrite/client-shapes.fixture.ts";
import { gluedAmong, readingsOf } from "../../src/masked/rewrite/named-addresses.ts";
import { buildOpenedReply } from "../../src/masked/rewrite/opened-reply.ts";
import { differenceOf, KINDS, PAIRS, play } from "../../src/masked/rewrite/oracle-play.fixture.ts";
import { diceOf, randomMessage } from "../../src/masked/rewrite/random-tree.fixture.ts";
import { buildReply } from "../../src/masked/rewrite/reply.ts";
import { A, D, order, R } from "../../src/masked/rewrite/reply-order.fixture.ts";
import { findAddressesIn } from "../../src/masked/rewrite/scrub/find-reverse.ts";
import { D_IDN, shows } from "../../src/masked/rewrite/shown-reply.fixture.ts";
import { readOptions, refuse, wholeNumber } from "../support/options.ts";

const ARRIVED_MIN = 0.98;
/** Seeds that lie side by side share none of their dice. */
const APART = 1_000_000;
const SEED_MAX = Math.floor(Number.MAX_SAFE_INTEGER / APART) - 1;

const USE = "npm run masks -- [--seed n] [--attacks n] [--innocent n] [--pairs n] [--kinds list] [--json]";
const { values } = readOptions(
  {
    options: {
      json: { type: "boolean", default: false },
      seed: { type: "string", default: String(Math.floor(Date.now() / 1000) % 2_000) },
      attacks: { type: "string", default: "600" },
      innocent: { type: "string", default: "200" },
      pairs: { type: "string", default: "10000" },
      kinds: { type: "string", default: KINDS.join(",") },
    },
  },
  USE,
);
const sizeOf = (option: "attacks" | "innocent" | "pairs") => wholeNumber(option, values[option], { least: 0 }, USE);
const sizes = { attacks: sizeOf("attacks"), innocent: sizeOf("innocent"), pairs: sizeOf("pairs") };
const start = wholeNumber("seed", values.seed, { least: 0, most: SEED_MAX }, USE) * APART;
const named = values.kinds.split(",");
const kinds = KINDS.filter((kind) => named.includes(kind));
const unknown = named.filter((kind) => !KINDS.some((known) => known === kind));
if (unknown.length > 0) refuse(`--kinds: unknown ${unknown.join(", ")}; there are ${KINDS.join(", ")}.`, USE);
console.error(`npm run masks -- --seed ${values.seed}`);

/** For the table: `bad` are leaks, or answers that differ. */
type Row = { tried: number; held: number; bad: number };
const rows = new Map<string, Row>();

function rowOf(name: string): Row {
  const row = rows.get(name) ?? { tried: 0, held: 0, bad: 0 };
  rows.set(name, row);
  return row;
}

async function attack(count: number) {
  const tally = { tried: count, leaked: 0, held: 0 };
  for (let seed = start; seed < start + count; seed += 1) {
    const { name, reply, isShown } =
      seed % 2 === 0 ? await attackByTree(seed / 2) : await attackByClass((seed - 1) / 2);
    const row = rowOf(name);
    row.tried += 1;
    if (reply.kind !== "built") {
      tally.held += 1;
      row.held += 1;
    } else if (await isShown(reply.bytes)) {
      tally.leaked += 1;
      row.bad += 1;
      console.error(`✖ seed ${seed}, ${name}: shown`);
    }
  }
  return tally;
}

/** The mailbox anywhere in a random tree of parts. */
async function attackByTree(seed: number) {
  const d = seed % 4 === 0 ? D_IDN : D;
  const reply = await buildOpenedReply(randomMessage(diceOf(seed), d), order(d));
  return { name: "the address anywhere in a random tree", reply, isShown: shows };
}

/** The name of its owner, its calendars and its files. */
async function attackByClass(seed: number) {
  const { name, bytes, mailbox, telling, others = [] } = attackOf(seed, diceOf(seed));
  const given = order(mailbox);
  const hidden = [...given.hidden, ...namedIn(bytes, others).map((from) => ({ from, to: A }))];
  const reply = await buildOpenedReply(bytes, { ...given, hidden });
  return {
    name,
    reply,
    isShown: async (sent: Buffer) => telling === null || telling.test(await readable(sent)) || shows(sent),
  };
}

/** Those of the author's other aliases that the mail names, as they are found for a reply. */
function namedIn(bytes: Buffer, others: readonly string[]): string[] {
  if (others.length === 0) return [];
  const { named } = findAddressesIn(bytes);
  const read = new Set(named.flatMap(readingsOf));
  return [...others.filter((one) => read.has(one)), ...gluedAmong(named, new Set(others))];
}

/** All that a reader of the message sees. */
async function readable(bytes: Buffer): Promise<string> {
  const { subject, text, html, attachments } = await PostalMime.parse(bytes, { attachmentEncoding: "arraybuffer" });
  const files = attachments.map(
    ({ filename, content }) => `${filename}\n${Buffer.from(content as ArrayBuffer).toString()}`,
  );
  return [subject, text, html, ...files].join("\n");
}

function write(count: number) {
  const tally = { tried: count, arrived: 0 };
  for (let at = 0; at < count; at += 1) {
    const shape = SHAPES[at % SHAPES.length] as (typeof SHAPES)[number];
    const d = `anna${diceOf(start + at)(1e6)}.real@home.real.example`;
    const text = shape.message({ d, r: R, a: A }).replace(/\r?\n/g, "\r\n");
    if (buildReply(Buffer.from(text), order(d)).kind === "built") tally.arrived += 1;
  }
  return tally;
}

function guess(count: number) {
  const tally = { tried: count, different: 0 };
  for (let seed = start; seed < start + count; seed += 1) {
    const [owner, other] = PAIRS[seed % PAIRS.length] as (typeof PAIRS)[number];
    const redact = (["all", "all", "quoted", "off"] as const)[seed % 4] ?? "all";
    const kind = kinds[Math.floor(seed / 4) % kinds.length] ?? "as it came";
    const [one, two] = [owner, other].map((name) => play(() => diceOf(seed), owner, name, { redact, kind }).reply);
    const difference = one && two ? differenceOf(one, two) : null;
    const row = rowOf(`guesses, ${kind}`);
    row.tried += 1;
    if (one?.kind !== "built") row.held += 1;
    if (difference === null) continue;
    tally.different += 1;
    row.bad += 1;
    console.error(`✖ seed ${seed}, ${kind}: ${difference}`);
  }
  return tally;
}

const found = {
  attacks: await attack(sizes.attacks),
  innocent: write(sizes.innocent),
  oracle_pairs: guess(sizes.pairs),
};
if (values.json) console.log(JSON.stringify(found));
else {
  console.log("| what is tried | tried | held | shown or different |\n| --- | ---: | ---: | ---: |");
  for (const [name, { tried, held, bad }] of rows) console.log(`| ${name} | ${tried} | ${held} | ${bad} |`);
  console.log(`| innocent replies | ${found.innocent.tried} | ${found.innocent.tried - found.innocent.arrived} | – |`);
}
const isWell = found.attacks.leaked === 0 && found.oracle_pairs.different === 0;
process.exitCode = isWell && found.innocent.arrived >= found.innocent.tried * ARRIVED_MIN ? 0 : 1;
