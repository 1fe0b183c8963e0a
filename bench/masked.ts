// Forwards through masked addresses a second: 4 KB mails over SMTP → verdicts, reverse addresses, a header written again, a
// commit, our signature → the sink. Beside it Debian's Postfix that forwards the same way without masking anything: a
// virtual alias, with OpenDKIM and without, in the same run. Counted once by Message-ID at the sink.
import { openDb } from "../src/platform/database/db.ts";
import { ask } from "../test/support/postern-process.ts";
import { postfixVersion } from "../test/support/postfix.ts";
import {
  type BenchResult,
  conditions,
  costOf,
  isAlone,
  ratioTo,
  round,
  routeToSink,
  type Stage,
  setStage,
  throughSink,
  warmUp,
} from "./support/bench.ts";
import { benchPostfix } from "./support/postfix.ts";
import { deliverMany } from "./support/smtp-load.ts";

const COUNT = 6_000;
const WARM = 9_000;
const PEER_WARM = 600;
const PEER_COUNT = 4_000;
const BYTES = 4_096;
const CONNECTIONS = 32;
/** An alias forwards 30 mails a minute. */
const PER_ALIAS = 20;
const AT_ONCE = 16;

/** Runs the benchmark; `rows` are the mails. */
export async function benchMasked({ rows = COUNT }: { rows?: number } = {}): Promise<BenchResult> {
  const stage = await setStage([
    ["api", "clock"],
    ["mx", "mta"],
  ]);
  try {
    routeToSink(stage.dns, "home.example");
    stage.dns.set("client.example", "TXT", ["v=spf1 ip4:127.0.0.1 -all"], 300);
    const aliases = await makeAliases(stage, Math.ceil((rows + WARM) / PER_ALIAS));
    const warm = await warmUp(stage, WARM, () => forward(stage, aliases, { first: 0, count: WARM }));
    const [perS, cost] = await costOf(stage, rows, () => forward(stage, aliases, { first: WARM, count: rows }));
    const peers: BenchResult["peers"] = {};
    for (const signed of isAlone() ? [] : [true, false]) {
      const counts = { count: Math.min(PEER_COUNT, rows), warm_up: PEER_WARM, connections: CONNECTIONS };
      const peer = { sink: stage.sink, ...counts, signed, body_bytes: BYTES, recipient: "alias@mask.example" };
      const figures = await benchPostfix(peer);
      if (figures !== null) peers[signed ? "postfix+opendkim" : "postfix"] = figures;
    }
    return {
      name: "masked",
      conditions: conditions(
        {
          rows,
          warm_up: WARM,
          peer_warm_up: PEER_WARM,
          aliases: aliases.length,
          connections: CONNECTIONS,
          message_bytes: messageOf(0).length,
          peer: Object.keys(peers).length === 0 ? "no peer measured" : postfixVersion(),
        },
        stage,
      ),
      ours: { per_s: round(perS), ...cost, ...warm },
      peers,
      ratio: ratioTo(peers, perS),
    };
  } finally {
    await stage.close();
  }
}

/** Aliases whose mailboxes have agreed; nothing of theirs is under way when it resolves. */
async function makeAliases(stage: Stage, count: number): Promise<string[]> {
  const limits = await ask(stage.settings, "PUT", "/v1/masked/settings", { aliases_hour: 2_000 });
  // Versions of before have no such limit.
  if (limits.status !== 200 && limits.status !== 404) throw new Error(`no limit was set: ${JSON.stringify(limits)}`);
  const made: string[] = [];
  let next = 0;
  const worker = async () => {
    for (let n = next++; n < count; n = next++) {
      const body = { forward_to: [`anna${n}@home.example`] };
      const answer = await ask(stage.settings, "POST", "/v1/masked/aliases", body);
      if (answer.status !== 201) throw new Error(`no alias was made: ${JSON.stringify(answer.body)}`);
      const { address, domain } = answer.body.alias as unknown as { address: string; domain: string };
      made.push(`${address}@${domain}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  await stage.sink.waitFor(count);
  const db = openDb(stage.database_url, { onError: () => undefined });
  await db.execute("update masked_destination set status = 'verified', confirmed_at = now()");
  await db.close();
  return made;
}

/** Forwards a second, from the first connection to the last final dot at the sink. */
async function forward(stage: Stage, aliases: string[], { first, count }: { first: number; count: number }) {
  return throughSink(stage, count, () =>
    deliverMany({
      port: Number(stage.settings.env.POSTERN_MX?.split(":")[1]),
      count,
      connections: CONNECTIONS,
      sender: "shop@client.example",
      recipient: (n) => aliases[(first + n) % aliases.length] as string,
      message: (n) => messageOf(first + n),
    }),
  );
}

const LINE = `${"Thank you for your order, which leaves our house today.".padEnd(76, ".")}\r\n`;

function messageOf(n: number): Buffer {
  const head = `From: The Shop <shop@client.example>\r\nTo: you@mask.example\r\nSubject: Order ${n}\r\nDate: Fri, 20 Nov 2026 09:00:00 +0000\r\nMessage-ID: <${n}@client.example>\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n`;
  return Buffer.from(head + LINE.repeat(Math.ceil((BYTES - head.length) / LINE.length)));
}
