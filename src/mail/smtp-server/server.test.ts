// The SMTP server over real sockets: the dialogue, its limits, and what hostile clients try.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createSecureContext, type SecureContext } from "node:tls";
import nodemailer from "nodemailer";
import { type RawSmtp, rawSmtp } from "../../../test/support/raw-smtp.ts";
import { makeCertificateAuthority } from "../../../test/support/tls.ts";
import { type Reply, reply } from "./reply.ts";
import { type SmtpServer, type SmtpServerOptions, startSmtpServer } from "./server.ts";
import type { Client, SessionLimits } from "./session.ts";

const DIALOGUES = join(import.meta.dirname, "../../../../shared/data/smtp-dialogues");

const LIMITS: SessionLimits = {
  command_ms: 5_000,
  command_under_load_ms: 1_000,
  handshake_ms: 5_000,
  data: { pause_ms: 5_000, window_ms: 5_000, rate_bytes_min: 1, total_ms: 20_000, bytes_max: 3_000_000 },
  data_under_load: { pause_ms: 1_000, window_ms: 5_000, rate_bytes_min: 1, total_ms: 20_000, bytes_max: 3_000_000 },
  size_max: 1_000_000,
  recipients_max: 3,
  messages_max: 5,
  commands_max: 60,
  errors_max: 20,
  errors_free: 20,
  tarpit_ms: 0,
};

type Kept = { from: string; to: string[]; content: Buffer; client: Client };

let context: SecureContext;
let server: SmtpServer;
let kept: Kept[] = [];
let failures: unknown[] = [];
let rcptAnswer: ((address: string) => Reply | null) | null = null;
let finishAnswer: (() => Promise<Reply>) | null = null;
const open = new Set<RawSmtp>();

function options(
  limits: Partial<SessionLimits> = {},
  more: Partial<SmtpServerOptions<string>> = {},
): SmtpServerOptions<string> {
  return {
    host: "127.0.0.1",
    port: 0,
    name: "mx.postern.test",
    limits: { ...LIMITS, ...limits },
    gate: { connections_max: 2_000, load_share: 0.5, per_client_max: 50, per_client_minute_max: 10_000 },
    tls: () => context,
    proxies: [],
    isTrusted: () => true,
    now: () => performance.now(),
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    onFailure: (error) => failures.push(error),
    hooks: {
      rcpt: async (_client, _transaction, path) => {
        const refused = rcptAnswer?.(path.text);
        return refused ? { kind: "refuse", reply: refused } : { kind: "accept", route: path.text };
      },
      data: async (client, transaction) => {
        const pieces: Buffer[] = [];
        return {
          write: (piece) => {
            pieces.push(piece);
          },
          finish: async () => {
            const answer = await finishAnswer?.();
            if (answer && answer.code >= 400) return answer;
            const to = transaction.recipients.map(({ route }) => route);
            kept.push({ from: transaction.from.text, to, content: Buffer.concat(pieces), client });
            return reply(250, "2.0.0", "kept");
          },
          abort: () => undefined,
        };
      },
    },
    ...more,
  };
}

async function client(port = server.port, how = {}): Promise<RawSmtp> {
  const connected = await rawSmtp(port, how);
  open.add(connected);
  assert.equal((await connected.reply()).code, 220);
  return connected;
}

before(async () => {
  const dir = mkdtempSync(join(tmpdir(), "postern-smtp-"));
  const { key, cert } = makeCertificateAuthority(dir).issue(["mx.postern.test"]);
  context = createSecureContext({ key, cert });
  rmSync(dir, { recursive: true });
  server = await startSmtpServer(options());
});
after(async () => {
  for (const connected of open) connected.destroy();
  await server.stop(1_000);
});

function reset(): void {
  kept = [];
  failures = [];
  rcptAnswer = null;
  finishAnswer = null;
}

const codes = async (smtp: RawSmtp, lines: string[]) => {
  const seen: number[] = [];
  for (const line of lines) seen.push((await smtp.ask(line)).code);
  return seen;
};

test("EHLO offers what is there, HELO offers nothing", async () => {
  reset();
  const smtp = await client();
  const hello = await smtp.ask("EHLO client.example");
  assert.deepEqual(hello.lines, [
    "250-mx.postern.test",
    "250-PIPELINING",
    "250-SIZE 1000000",
    "250-8BITMIME",
    "250-SMTPUTF8",
    "250-STARTTLS",
    "250 ENHANCEDSTATUSCODES",
  ]);
  assert.deepEqual((await smtp.ask("HELO client.example")).lines, ["250 mx.postern.test"]);
});

test("a mail by nodemailer arrives as it was sent, over STARTTLS, and its client is described", async () => {
  reset();
  const transport = nodemailer.createTransport({
    host: "127.0.0.1",
    port: server.port,
    tls: { rejectUnauthorized: false },
  });
  await transport.sendMail({ from: "a@sender.example", to: "b@rcpt.example", subject: "Hi", text: "..\n.x\nend" });
  transport.close();
  const [mail] = kept;
  assert.deepEqual([mail?.from, mail?.to], ["a@sender.example", ["b@rcpt.example"]]);
  assert.match(String(mail?.content), /\r\n\r\n\.\.\r\n\.x\r\nend\r\n$/);
  assert.equal(mail?.client.protocol, "ESMTPS");
  assert.match(mail?.client.tls ?? "", /^TLSv1\.3 TLS_/);
});

test("a whole pipelined transaction is answered in order, and every reply but 354 has an enhanced code", async () => {
  reset();
  const smtp = await client();
  await smtp.ask("EHLO x");
  smtp.write(
    "MAIL FROM:<a@b.example> SIZE=20 BODY=8BITMIME\r\nRCPT TO:<c@d.example>\r\nRCPT TO:<e@f.example>\r\nDATA\r\n",
  );
  const first = [];
  for (let at = 0; at < 4; at += 1) first.push((await smtp.reply()).text);
  assert.deepEqual(
    first.map((text) => text.slice(0, 9)),
    ["250 2.1.0", "250 2.1.5", "250 2.1.5", "354 end t"],
  );
  smtp.write(
    "Subject: x\r\n\r\nHello\r\n.\r\nMAIL FROM:<>\r\nRCPT TO:<c@d.example>\r\nNOOP\r\nVRFY c\r\nRSET\r\nQUIT\r\n",
  );
  const then = [];
  for (let at = 0; at < 7; at += 1) then.push((await smtp.reply()).text.slice(0, 9));
  assert.deepEqual(then, ["250 2.0.0", "250 2.1.0", "250 2.1.5", "250 2.0.0", "252 2.1.5", "250 2.0.0", "221 2.0.0"]);
  await smtp.closed;
  assert.equal(kept.length, 1);
  assert.equal(String(kept[0]?.content), "Subject: x\r\n\r\nHello\r\n");
});

test("pipelined commands are answered in one packet", async () => {
  const smtp = await client();
  const packets: string[] = [];
  smtp.socket.on("data", (chunk: Buffer) => packets.push(String(chunk)));
  smtp.write("NOOP\r\nNOOP\r\nNOOP\r\n");
  for (let at = 0; at < 3; at += 1) await smtp.reply();
  assert.equal(packets.length, 1);
});

for (const [why, lines, wanted] of [
  ["MAIL before EHLO", ["MAIL FROM:<a@b.example>"], [503]],
  ["RCPT without MAIL", ["EHLO x", "RCPT TO:<a@b.example>"], [250, 503]],
  ["DATA without MAIL", ["EHLO x", "DATA"], [250, 503]],
  ["DATA without a recipient", ["EHLO x", "MAIL FROM:<a@b.example>", "DATA"], [250, 250, 554]],
  ["a second MAIL", ["EHLO x", "MAIL FROM:<a@b.example>", "MAIL FROM:<a@b.example>"], [250, 250, 503]],
  ["HELO and EHLO without a name", ["HELO", "EHLO", "EHLO  ", "HELO x"], [501, 501, 501, 250]],
  ["a name that is too long", [`EHLO ${"x".repeat(256)}`, `HELO ${"a".repeat(1_500)}`], [501, 501]],
  ["unknown commands", ["FOO", "GET / HTTP/1.1", "", "MAILFROM:<a@b.example>"], [500, 500, 500, 500]],
  ["commands that are not offered", ["EXPN x", "AUTH PLAIN", "BDAT 10 LAST", "ETRN x"], [502, 502, 502, 502]],
  [
    "bad MAIL syntax",
    ["EHLO x", "MAIL", "MAIL FROM", "MAIL FROM:", "MAIL TO:<a@b.example>", "MAIL FROM:<a@b.example"],
    [250, 501, 501, 501, 501, 501],
  ],
  ["a sender without a domain", ["EHLO x", "MAIL FROM:<root>"], [250, 501]],
  [
    "bad parameters",
    [
      "EHLO x",
      "MAIL FROM:<a@b.example> SIZE=x",
      "MAIL FROM:<a@b.example> FOO=1",
      "MAIL FROM:<a@b.example> BODY=BINARYMIME",
      "MAIL FROM:<a@b.example> SIZE=1 SIZE=1",
      "MAIL FROM:<> RET=FULL",
    ],
    [250, 501, 555, 501, 501, 555],
  ],
  [
    "a size that is too large",
    ["EHLO x", "MAIL FROM:<a@b.example> SIZE=1000001", "MAIL FROM:<a@b.example> SIZE=1000000"],
    [250, 552, 250],
  ],
  ["parameters of RCPT", ["EHLO x", "MAIL FROM:<>", "RCPT TO:<a@b.example> NOTIFY=NEVER"], [250, 250, 555]],
  ["a null recipient", ["EHLO x", "MAIL FROM:<>", "RCPT TO:<>"], [250, 250, 501]],
  [
    "a UTF-8 address without SMTPUTF8",
    ["EHLO x", "MAIL FROM:<ü@b.example>", "MAIL FROM:<>", "RCPT TO:<ü@b.example>"],
    [250, 553, 250, 553],
  ],
  [
    "a UTF-8 address with SMTPUTF8",
    ["EHLO x", "MAIL FROM:<ü@b.example> SMTPUTF8", "RCPT TO:<ü@b.example>"],
    [250, 250, 250],
  ],
  ["control characters", ["NO\x01OP", "EHLO a\x7fb"], [500, 500]],
  [
    "too many recipients",
    ["EHLO x", "MAIL FROM:<>", ...["a", "b", "c", "a", "d"].map((l) => `RCPT TO:<${l}@x.example>`)],
    [250, 250, 250, 250, 250, 250, 452],
  ],
  [
    "RSET, EHLO and a refused DATA in a transaction",
    ["EHLO x", "MAIL FROM:<>", "RSET", "RCPT TO:<a@x.example>", "MAIL FROM:<>", "EHLO x", "RCPT TO:<a@x.example>"],
    [250, 250, 250, 503, 250, 250, 503],
  ],
  [
    "sloppy spaces and missing brackets",
    ["EHLO x", "MAIL FROM: <a@b.example>", "RCPT TO: c@d.example"],
    [250, 250, 250],
  ],
  [
    "lower case",
    ["ehlo x", "mail from:<a@b.example> size=10", "rcpt to:<c@d.example>", "noop", "quit"],
    [250, 250, 250, 250, 221],
  ],
] as const) {
  test(`${why}: ${wanted.join(" ")}`, async () => {
    reset();
    const smtp = await client();
    assert.deepEqual(await codes(smtp, [...lines]), [...wanted]);
    smtp.destroy();
  });
}

test("a source route is ignored, not followed", async () => {
  reset();
  const smtp = await client();
  await codes(smtp, [
    "EHLO x",
    "MAIL FROM:<@relay.example,@other.example:a@b.example>",
    "RCPT TO:<@us.example:c@d.example>",
  ]);
  await smtp.ask("DATA");
  smtp.write("x\r\n.\r\n");
  await smtp.reply();
  assert.deepEqual([kept[0]?.from, kept[0]?.to], ["a@b.example", ["c@d.example"]]);
});

test("every end of a transaction discards it", async () => {
  reset();
  const smtp = await client();
  const begin = ["EHLO x", "MAIL FROM:<a@b.example>", "RCPT TO:<c@d.example>", "DATA"];
  const afterwards = async () => [(await smtp.ask("RCPT TO:<c@d.example>")).code, (await smtp.ask("DATA")).code];
  await codes(smtp, begin);
  smtp.write("x\r\n.\r\n");
  assert.equal((await smtp.reply()).code, 250);
  assert.deepEqual(await afterwards(), [503, 503], "after a message that was taken");
  finishAnswer = async () => reply(554, "5.7.1", "no");
  await codes(smtp, begin);
  smtp.write("x\r\n.\r\n");
  assert.equal((await smtp.reply()).code, 554);
  assert.deepEqual(await afterwards(), [503, 503], "after one that was refused");
  finishAnswer = async () => {
    throw new Error("broken");
  };
  await codes(smtp, begin);
  smtp.write("x\r\n.\r\n");
  assert.match((await smtp.reply()).text, /^451 4\.3\.0 /);
  assert.deepEqual(await afterwards(), [503, 503], "after a fault of ours");
  assert.equal(failures.length, 1);
  await codes(smtp, begin);
  smtp.write(`${"x".repeat(998)}\r\n`.repeat(1_100));
  smtp.write(".\r\n");
  assert.match((await smtp.reply()).text, /^552 5\.3\.4 /);
  assert.deepEqual(await afterwards(), [503, 503], "after one that was too large");
  assert.equal(kept.length, 1);
});

test("what was said in clear behind STARTTLS does not count", async () => {
  reset();
  const smtp = await client();
  await codes(smtp, ["EHLO x", "MAIL FROM:<evil@b.example>"]);
  smtp.write("RSET\r\nSTARTTLS\r\nEHLO smuggled\r\nMAIL FROM:<evil@b.example>\r\nRCPT TO:<c@d.example>\r\n");
  assert.equal((await smtp.reply()).code, 250);
  assert.equal((await smtp.reply()).code, 220);
  await smtp.startTls();
  assert.equal((await smtp.ask("MAIL FROM:<a@b.example>")).code, 503, "EHLO is forgotten");
  assert.equal((await smtp.ask("RCPT TO:<c@d.example>")).code, 503, "MAIL is forgotten");
  const hello = await smtp.ask("EHLO x");
  assert.ok(!hello.text.includes("STARTTLS"));
  assert.equal((await smtp.ask("STARTTLS")).code, 503);
});

test("a TLS handshake that never comes ends the connection", async () => {
  const quick = await startSmtpServer(options({ handshake_ms: 200 }));
  const smtp = await client(quick.port);
  await codes(smtp, ["EHLO x", "STARTTLS"]);
  await smtp.closed;
  const noise = await client(quick.port);
  await codes(noise, ["EHLO x", "STARTTLS"]);
  noise.write("this is no ClientHello\r\n");
  await noise.closed;
  await quick.stop(100);
});

for (const [name, bytes] of [
  ["a bare LF", "NOOP\n"],
  ["a bare CR", "NO\rOP\r\n"],
  ["NUL", "NO\0OP\r\n"],
] as const) {
  test(`a command with ${name} is refused with 554 and the connection closed`, async () => {
    const smtp = await client();
    smtp.write(bytes);
    assert.match((await smtp.reply()).text, /^554 5\.5\.2 /);
    await smtp.closed;
  });
}

test("a line without end is cut off after 2,048 octets", async () => {
  const smtp = await client();
  smtp.write("A".repeat(100_000));
  assert.match((await smtp.reply()).text, /^500 5\.5\.2 /);
  await smtp.closed;
});

test("no smuggled sequence makes two messages, wherever the packets are cut", async (t) => {
  if (!existsSync(DIALOGUES)) return t.skip("the shared data folder is missing");
  reset();
  const { inbound } = JSON.parse(readFileSync(join(DIALOGUES, "end-of-data-sequences.json"), "utf8"));
  const more = ["\r\n.\n", "\r\n.\r", "\r\n.\r\r\n", "\r\r\n.\r\n", "\n\r\n.\r"];
  const quick = await startSmtpServer(options({ command_ms: 60_000 }));
  for (const sequence of [...inbound, ...more] as string[]) {
    const hidden = "MAIL FROM:<evil@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\nSubject: smuggled\r\n\r\nx\r\n.\r\n";
    const content = `Subject: x\r\n\r\nbody${sequence}${hidden}`;
    const near = content.indexOf("body") + 4;
    for (let cut = near - 1; cut <= near + sequence.length + 1; cut += 1) {
      const smtp = await client(quick.port);
      smtp.write("EHLO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\n");
      for (let at = 0; at < 4; at += 1) await smtp.reply();
      smtp.write(content.slice(0, cut));
      await new Promise((resolve) => setImmediate(resolve));
      smtp.write(content.slice(cut));
      assert.match((await smtp.reply()).text, /^554 5\.5\.2 /, JSON.stringify([sequence, cut]));
      await smtp.closed;
    }
  }
  assert.deepEqual(kept, []);
  await quick.stop(100);
});

test("the conversations of another server's tests get the same class of answers", async (t) => {
  if (!existsSync(DIALOGUES)) return t.skip("the shared data folder is missing");
  reset();
  for (const name of [
    "t-05-null_address-sendmail",
    "t-12-minor_dialogs-sendmail",
    "t-12-minor_dialogs-data_dot_stuffing",
    "t-12-minor_dialogs-empty_helo",
    "t-12-minor_dialogs-line_too_long",
    "t-12-minor_dialogs-bad_data_dot",
  ]) {
    await playDialogue(readFileSync(join(DIALOGUES, `${name}.cmy`), "utf8"));
  }
  assert.equal(kept.length, 3);
  assert.match(String(kept[2]?.content), /^From: Mailer daemon <somewhere@horns\.com>\r\n/);
  assert.match(String(kept[2]?.content), /\r\nMuahahahaha\r\n\r\n\.x\r\n\r\n\.\r\n\r\nThis is stuffy\.\r\n\r\n$/);
});

/** `c -> line`, `c ~> 'bytes'`, `c <~ 250`, `c <- text`, `c <... text`: the class of the code is compared. */
async function playDialogue(script: string): Promise<void> {
  const smtp = await rawSmtp(server.port);
  open.add(smtp);
  for (const line of script.split("\n")) {
    const [, kind, rest = ""] = /^c (->|~>|<~|<-|<\.\.\.) ?(.*)$/.exec(line) ?? [];
    if (kind === "->") smtp.write(Buffer.from(`${rest}\r\n`));
    else if (kind === "~>") smtp.write(JSON.parse(`"${rest.slice(1, -1)}"`));
    else if (kind) assert.equal((await smtp.reply()).text[0], rest[0], `${line} in\n${script}`);
  }
}

test("a client that errs is answered late, and in the end not at all", async () => {
  const strict = await startSmtpServer(options({ errors_free: 2, errors_max: 5, tarpit_ms: 120 }));
  const smtp = await client(strict.port);
  const times: number[] = [];
  for (let at = 0; at < 5; at += 1) {
    const startedAt = performance.now();
    assert.equal((await smtp.ask("FOO")).code, 500);
    times.push(performance.now() - startedAt);
  }
  assert.ok(times[1]! < 100 && times[2]! >= 119 && times[4]! >= 119, times.join());
  assert.match((await smtp.reply()).text, /^421 4\.7\.0 /);
  await smtp.closed;
  await strict.stop(100);
});

test("a client that only chats is shown the door", async () => {
  const strict = await startSmtpServer(options({ commands_max: 10 }));
  const smtp = await client(strict.port);
  for (let at = 0; at < 10; at += 1) assert.equal((await smtp.ask("NOOP")).code, 250);
  assert.match((await smtp.ask("NOOP")).text, /^421 4\.7\.0 /);
  await smtp.closed;
  await strict.stop(100);
});

test("a connection takes so many messages and no more", async () => {
  reset();
  const smtp = await client();
  for (let at = 0; at < 5; at += 1) {
    assert.equal((await smtp.deliver({ from: "a@b.example", to: ["c@d.example"], content: "x" })).code, 250);
  }
  assert.equal((await smtp.deliver({ from: "a@b.example", to: ["c@d.example"], content: "x" })).code, 421);
  await smtp.closed;
});

test("a silent client is told so, a trickling line does not gain time", async () => {
  const quick = await startSmtpServer(options({ command_ms: 300 }));
  const silent = await client(quick.port);
  assert.match((await silent.reply()).text, /^421 4\.4\.2 /);
  await silent.closed;
  const trickling = await client(quick.port);
  const timer = setInterval(() => trickling.write("x"), 50);
  assert.match((await trickling.reply(2_000)).text, /^421 4\.4\.2 /);
  clearInterval(timer);
  await quick.stop(100);
});

test("a message that comes too slowly is given up, one at the least rate is not", async () => {
  reset();
  const data = { pause_ms: 1_000, window_ms: 300, rate_bytes_min: 40, total_ms: 10_000, bytes_max: 3_000_000 };
  const quick = await startSmtpServer(options({ data }));
  const begin = ["EHLO x", "MAIL FROM:<a@b.example>", "RCPT TO:<c@d.example>", "DATA"];
  const slow = await client(quick.port);
  await codes(slow, begin);
  const one = setInterval(() => slow.write("x"), 30);
  assert.match((await slow.reply(2_000)).text, /^421 4\.4\.2 /);
  clearInterval(one);
  const steady = await client(quick.port);
  await codes(steady, begin);
  for (let at = 0; at < 8; at += 1) {
    steady.write(`${"x".repeat(60)}\r\n`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  steady.write(".\r\n");
  assert.equal((await steady.reply()).code, 250);
  await quick.stop(100);
});

test("a client that never stops sending a message that is too large is cut off", async () => {
  reset();
  const smtp = await client();
  await codes(smtp, ["EHLO x", "MAIL FROM:<a@b.example>", "RCPT TO:<c@d.example>", "DATA"]);
  const line = `${"x".repeat(998)}\r\n`.repeat(100);
  for (let at = 0; at < 50; at += 1) smtp.write(line);
  assert.match((await smtp.reply()).text, /^552 5\.3\.4 /);
  await smtp.closed;
  assert.deepEqual(kept, []);
});

test("a message is held back while it cannot be kept as fast as it comes", async () => {
  let writes = 0;
  let writing = 0;
  let most = 0;
  const slow = await startSmtpServer(
    options(
      {},
      {
        hooks: {
          rcpt: async () => ({ kind: "accept", route: "" }),
          data: async () => ({
            write: async () => {
              writes += 1;
              writing += 1;
              most = Math.max(most, writing);
              await new Promise((resolve) => setTimeout(resolve, 5));
              writing -= 1;
            },
            finish: async () => reply(250, "2.0.0", "kept"),
            abort: () => undefined,
          }),
        },
      },
    ),
  );
  const smtp = await client(slow.port);
  const answer = await smtp.deliver({
    from: "a@b.example",
    to: ["c@d.example"],
    content: `${"x".repeat(900_000)}\r\n`,
  });
  assert.equal(answer.code, 250);
  assert.ok(writes > 5, `${writes} writes`);
  assert.equal(most, 1);
  await slow.stop(100);
});

test("connections are limited, in all and of one client; trusted clients only in all", async () => {
  const small = await startSmtpServer(
    options(
      {},
      {
        gate: { connections_max: 4, load_share: 0.5, per_client_max: 2, per_client_minute_max: 3 },
        isTrusted: (ip) => ip === "127.0.0.9",
      },
    ),
  );
  const first = [await client(small.port), await client(small.port)];
  const refused = await rawSmtp(small.port);
  assert.match((await refused.reply()).text, /^421 4\.7\.0 too many connections from your network at once/);
  await refused.closed;
  const others = [
    await client(small.port, { localAddress: "127.0.0.9" }),
    await client(small.port, { localAddress: "127.0.0.9" }),
  ];
  assert.equal(small.connections(), 4);
  const full = await rawSmtp(small.port, { localAddress: "127.0.0.9" });
  assert.match((await full.reply()).text, /^421 4\.3\.2 /);
  for (const smtp of [...first, ...others]) {
    await smtp.ask("QUIT");
    await smtp.closed;
  }
  const third = await client(small.port);
  await third.ask("QUIT");
  await third.closed;
  const fast = await rawSmtp(small.port);
  assert.match((await fast.reply()).text, /^421 4\.7\.0 .*in a minute/);
  await small.stop(100);
  assert.equal(small.connections(), 0);
});

test("behind a load balancer the PROXY header names the client, and only there", async () => {
  reset();
  const proxied = await startSmtpServer(options({}, { proxies: ["127.0.0.0/30", "nonsense"] }));
  const connect = async (header: string, localAddress = "127.0.0.1") => {
    const smtp = await rawSmtp(proxied.port, { localAddress });
    smtp.write(header);
    return smtp;
  };
  const v4 = await connect("PROXY TCP4 192.0.2.7 198.51.100.1 4711 25\r\n");
  assert.equal((await v4.reply()).code, 220);
  await v4.deliver({ from: "a@b.example", to: ["c@d.example"], content: "x" });
  assert.deepEqual([kept[0]?.client.ip, kept[0]?.client.port], ["192.0.2.7", 4711]);
  const v6 = await connect("PROXY TCP6 2001:db8::7 2001:db8::1 4711 25\r\n");
  assert.equal((await v6.reply()).code, 220);
  await v6.deliver({ from: "a@b.example", to: ["c@d.example"], content: "x" });
  assert.equal(kept[1]?.client.ip, "2001:db8::7");
  const own = await connect("PROXY UNKNOWN\r\n");
  assert.equal((await own.reply()).code, 220);
  for (const bad of [
    "EHLO x\r\n",
    "PROXY TCP4 192.0.2.7 198.51.100.1 4711\r\n",
    "PROXY TCP4 2001:db8::7 ::1 1 2\r\n",
    `PROXY TCP4 ${"1".repeat(200)}\r\n`,
    "PROXY TCP4 1.2.3.4 1.2.3.4 99999 25\r\n",
  ]) {
    const smtp = await connect(bad);
    await smtp.closed;
    assert.equal(smtp.received(), "", bad);
  }
  const direct = await connect("PROXY TCP4 192.0.2.7 198.51.100.1 4711 25\r\n", "127.0.0.9");
  assert.equal((await direct.reply()).code, 220);
  assert.equal((await direct.reply()).code, 500, "from elsewhere the header is an unknown command");
  direct.destroy();
  await proxied.stop(100);
});

test("a stop lets a message in, sends the idle away, and takes nobody new", async () => {
  reset();
  const stopping = await startSmtpServer(options());
  const idle = await client(stopping.port);
  const busy = await client(stopping.port);
  await codes(busy, ["EHLO x", "MAIL FROM:<a@b.example>", "RCPT TO:<c@d.example>", "DATA"]);
  busy.write("Subject: x\r\n");
  const stopped = stopping.stop(5_000);
  assert.match((await idle.reply()).text, /^421 4\.3\.2 /);
  await idle.closed;
  busy.write("\r\nbody\r\n.\r\n");
  assert.equal((await busy.reply()).code, 250);
  assert.match((await busy.reply()).text, /^421 4\.3\.2 /);
  await stopped;
  assert.equal(kept.length, 1);
  await assert.rejects(rawSmtp(stopping.port));
});

test("a thousand slow connections do not stop a normal one", async () => {
  reset();
  const crowded = await startSmtpServer(options({ command_ms: 60_000 }));
  const slow: RawSmtp[] = [];
  for (let at = 0; at < 1_000; at += 1) slow.push(await rawSmtp(crowded.port));
  for (const smtp of slow) smtp.write("E");
  const startedAt = performance.now();
  const normal = await client(crowded.port);
  assert.equal((await normal.deliver({ from: "a@b.example", to: ["c@d.example"], content: "x" })).code, 250);
  assert.ok(performance.now() - startedAt < 1_000);
  for (const smtp of slow) smtp.destroy();
  await crowded.stop(100);
});

test("a random conversation never gets a recipient or a message past the order of commands", async () => {
  reset();
  const free = await startSmtpServer(
    options({ errors_max: 1e9, errors_free: 1e9, commands_max: 1e9, messages_max: 1e9 }),
  );
  const smtp = await client(free.port);
  const words = [
    "EHLO x",
    "HELO x",
    "MAIL FROM:<a@b.example>",
    "RCPT TO:<c@d.example>",
    "DATA",
    "RSET",
    "NOOP",
    "FOO",
    "MAIL FROM:<",
    "RCPT TO:<",
    "MAIL FROM:<> SIZE=9999999",
  ];
  const model = { hello: false, mail: false, rcpts: 0 };
  let seed = 1;
  for (let at = 0; at < 20_000; at += 1) {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    const word = words[Math.floor((seed / 2_147_483_648) * words.length)] as string;
    const { code } = await smtp.ask(word);
    assert.equal(code, expected(model, word), `${word} as number ${at}`);
    if (code === 354) {
      smtp.write("x\r\n.\r\n");
      assert.equal((await smtp.reply()).code, 250);
      Object.assign(model, { mail: false, rcpts: 0 });
    }
  }
  assert.ok(kept.length > 100, String(kept.length));
  await free.stop(100);
});

function expected(model: { hello: boolean; mail: boolean; rcpts: number }, word: string): number {
  const verb = word.slice(0, 4);
  if (verb === "EHLO" || verb === "HELO") {
    Object.assign(model, { hello: true, mail: false, rcpts: 0 });
    return 250;
  }
  if (verb === "RSET") {
    Object.assign(model, { mail: false, rcpts: 0 });
    return 250;
  }
  if (verb === "NOOP") return 250;
  if (verb === "FOO") return 500;
  if (verb === "MAIL") {
    if (!model.hello || model.mail) return 503;
    if (word.endsWith("<")) return 501;
    if (word.includes("SIZE")) return 552;
    model.mail = true;
    return 250;
  }
  if (!model.mail) return 503;
  if (verb === "RCPT") {
    if (word.endsWith("<")) return 501;
    model.rcpts += 1;
    return 250;
  }
  return model.rcpts > 0 ? 354 : 554;
}
