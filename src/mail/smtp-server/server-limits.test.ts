// The limits of the SMTP server over real sockets: errors, time, rate, size, connections, load balancers, stopping.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { type RawSmtp, rawSmtp } from "../../../test/support/raw-smtp.ts";
import { reply } from "./reply.ts";
import { type Box, codes, greeted, hangUp, serverOptions } from "./server.fixture.ts";
import { type SmtpServer, type SmtpServerOptions, startSmtpServer } from "./server.ts";
import type { SessionLimits } from "./session.ts";

const box: Box = { kept: [], failures: [], finish: null };
let server: SmtpServer;
const client = (port = server.port, how = {}) => greeted(port, how);
const options: (
  limits?: Partial<SessionLimits>,
  more?: Partial<SmtpServerOptions<string>>,
) => SmtpServerOptions<string> = (limits, more) => serverOptions(box, limits, more);

before(async () => {
  server = await startSmtpServer(options());
});
beforeEach(() => {
  Object.assign(box, { kept: [], failures: [], finish: null });
});
after(async () => {
  hangUp();
  await server.stop(1_000);
});

test("a client that errs is answered late, and in the end not at all", async () => {
  const slept: number[] = [];
  const sleep = async (ms: number) => {
    slept.push(ms);
    await new Promise(setImmediate);
  };
  const strict = await startSmtpServer(options({ errors_free: 2, errors_max: 5, tarpit_ms: 400 }, { sleep }));
  const smtp = await client(strict.port);
  const sleptAfter: number[] = [];
  for (let at = 0; at < 5; at += 1) {
    assert.equal((await smtp.ask("FOO")).code, 500);
    sleptAfter.push(slept.length);
  }
  assert.deepEqual(sleptAfter, [0, 0, 1, 2, 3]);
  assert.deepEqual(slept, [400, 400, 400]);
  assert.match((await smtp.reply()).text, /^421 4\.7\.0 /);
  await smtp.closed;
  await strict.stop(100);
});

test("recipients beyond the limit are deferred, and those that were taken get the mail", async () => {
  const waits: number[] = [];
  const crowded = await startSmtpServer(
    options(
      { recipients_max: 100, commands_max: 300, errors_max: 20, errors_free: 5, tarpit_ms: 1_000 },
      {
        sleep: async (ms) => {
          waits.push(ms);
        },
      },
    ),
  );
  const smtp = await client(crowded.port);
  await smtp.ask("EHLO relay.example");
  let left = Array.from({ length: 450 }, (_, index) => `member${index}@list.example`);
  const sizes: number[] = [];
  while (left.length > 0) {
    assert.equal((await smtp.ask("MAIL FROM:<list@sender.example>")).code, 250);
    const putOff: string[] = [];
    for (const address of left) {
      const { code, text } = await smtp.ask(`RCPT TO:<${address}>`);
      if (code === 250) continue;
      assert.match(text, /^452 4\.5\.3 /);
      putOff.push(address);
    }
    assert.equal((await smtp.ask("DATA")).code, 354);
    smtp.write("Subject: to all\r\n\r\nx\r\n.\r\n");
    assert.equal((await smtp.reply()).code, 250);
    sizes.push(left.length - putOff.length);
    left = putOff;
  }
  assert.deepEqual(sizes, [100, 100, 100, 100, 50]);
  assert.equal(new Set(box.kept.flatMap(({ to }) => to)).size, 450);
  assert.deepEqual(waits, []);
  await crowded.stop(100);
});

test("recipients that are deferred do not count as errors: those that were taken get the mail", async () => {
  const seen = new Set<string>();
  const known = (address: string) => seen.has(address) || !seen.add(address);
  const { hooks } = options();
  const grey = await startSmtpServer(
    options(
      { recipients_max: 100, errors_max: 5 },
      {
        hooks: {
          ...hooks,
          rcpt: async (_client, _transaction, path) =>
            known(path.text)
              ? { kind: "accept", route: path.text }
              : { kind: "refuse", reply: reply(451, "4.7.1", "greylisted") },
        },
      },
    ),
  );
  const smtp = await client(grey.port);
  await smtp.ask("EHLO relay.example");
  const members = Array.from({ length: 12 }, (_, index) => `RCPT TO:<member${index}@list.example>`);
  assert.equal((await smtp.ask("MAIL FROM:<list@sender.example>")).code, 250);
  await smtp.ask(members[0]!);
  assert.deepEqual(await codes(smtp, members), [250, ...members.slice(1).map(() => 451)]);
  assert.equal((await smtp.ask("DATA")).code, 354);
  smtp.write("Subject: to one\r\n\r\nx\r\n.\r\n");
  assert.equal((await smtp.reply()).code, 250);
  assert.deepEqual(box.kept[0]?.to, ["member0@list.example"]);
  await grey.stop(100);
});

test("errors are forgiven by a message that is taken", async () => {
  const strict = await startSmtpServer(options({ errors_max: 5, commands_max: 1_000 }));
  const smtp = await client(strict.port);
  for (let round = 0; round < 3; round += 1) {
    for (let at = 0; at < 4; at += 1) assert.equal((await smtp.ask("FOO")).code, 500);
    assert.equal((await smtp.deliver({ from: "a@b.example", to: ["c@d.example"], content: "x" })).code, 250);
  }
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
  const smtp = await client();
  for (let at = 0; at < 5; at += 1) {
    assert.equal((await smtp.deliver({ from: "a@b.example", to: ["c@d.example"], content: "x" })).code, 250);
  }
  assert.equal((await smtp.deliver({ from: "a@b.example", to: ["c@d.example"], content: "x" })).code, 421);
  await smtp.closed;
});

test("a silent client gets an answer, a trickling line does not gain time", async () => {
  const quick = await startSmtpServer(options({ command_ms: 300 }));
  const silent = await client(quick.port);
  assert.match((await silent.reply()).text, /^421 4\.4\.2 /);
  await silent.closed;
  const trickling = await client(quick.port);
  const timer = setInterval(() => trickling.write("x"), 50);
  assert.match((await trickling.reply()).text, /^421 4\.4\.2 /);
  clearInterval(timer);
  await quick.stop(100);
});

test("a message that comes too slowly is given up, one at the least rate is not", async () => {
  const data = { pause_ms: 10_000, window_ms: 1_000, rate_bytes_min: 40, total_ms: 10_000, bytes_max: 3_000_000 };
  const quick = await startSmtpServer(options({ data }));
  const begin = ["EHLO x", "MAIL FROM:<a@b.example>", "RCPT TO:<c@d.example>", "DATA"];
  const slow = await client(quick.port);
  await codes(slow, begin);
  const one = setInterval(() => slow.write("x"), 30);
  assert.match((await slow.reply()).text, /^421 4\.4\.2 /);
  clearInterval(one);
  const steady = await client(quick.port);
  await codes(steady, begin);
  // Twenty times the least rate, for longer than the window.
  for (let at = 0; at < 30; at += 1) {
    steady.write(`${"x".repeat(60)}\r\n`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  steady.write(".\r\n");
  assert.equal((await steady.reply()).code, 250);
  await quick.stop(100);
});

test("a client that never stops sending a message that is too large is cut off", async () => {
  const smtp = await client();
  await codes(smtp, ["EHLO x", "MAIL FROM:<a@b.example>", "RCPT TO:<c@d.example>", "DATA"]);
  const line = `${"x".repeat(998)}\r\n`.repeat(100);
  for (let at = 0; at < 50; at += 1) smtp.write(line);
  assert.match((await smtp.reply()).text, /^552 5\.3\.4 /);
  await smtp.closed;
  assert.deepEqual(box.kept, []);
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
        client_limits: { connections_max: 4, load_share: 0.5, per_client_max: 2, per_client_minute_max: 3 },
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
  const proxied = await startSmtpServer(options({}, { isProxy: (ip) => /^127\.0\.0\.[0-3]$/.test(ip) }));
  const connect = async (header: string, localAddress = "127.0.0.1") => {
    const smtp = await rawSmtp(proxied.port, { localAddress });
    smtp.write(header);
    return smtp;
  };
  const v4 = await connect("PROXY TCP4 192.0.2.7 198.51.100.1 4711 25\r\n");
  assert.equal((await v4.reply()).code, 220);
  await v4.deliver({ from: "a@b.example", to: ["c@d.example"], content: "x" });
  assert.deepEqual([box.kept[0]?.client.ip, box.kept[0]?.client.port], ["192.0.2.7", 4711]);
  const v6 = await connect("PROXY TCP6 2001:db8::7 2001:db8::1 4711 25\r\n");
  assert.equal((await v6.reply()).code, 220);
  await v6.deliver({ from: "a@b.example", to: ["c@d.example"], content: "x" });
  assert.equal(box.kept[1]?.client.ip, "2001:db8::7");
  const binary = await connect("\r\n\r\n\0\r\nQUIT\n!\x11\0\x0cABCDEFGH\x12\x6f\0\x19EHLO x\r\n");
  assert.equal((await binary.reply()).code, 220);
  assert.equal((await binary.reply()).code, 250, "what came in the same packet counts");
  await binary.deliver({ from: "a@b.example", to: ["c@d.example"], content: "x" });
  assert.equal(box.kept[2]?.client.ip, "65.66.67.68");
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
  assert.equal(box.kept.length, 1);
  await assert.rejects(rawSmtp(stopping.port));
});

test("a thousand slow connections do not stop a normal one", async () => {
  const crowded = await startSmtpServer(options({ command_ms: 60_000 }));
  const slow: RawSmtp[] = [];
  for (let at = 0; at < 1_000; at += 1) slow.push(await rawSmtp(crowded.port));
  for (const smtp of slow) smtp.write("E");
  const startedAt = performance.now();
  const normal = await client(crowded.port);
  assert.equal((await normal.deliver({ from: "a@b.example", to: ["c@d.example"], content: "x" })).code, 250);
  assert.ok(performance.now() - startedAt < 10_000);
  for (const smtp of slow) smtp.destroy();
  await crowded.stop(100);
});

test("a random conversation never gets a recipient or a message past the order of commands", async () => {
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
  assert.ok(box.kept.length > 100, String(box.kept.length));
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
