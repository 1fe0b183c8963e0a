// The SMTP server over real sockets: the dialogue, and what hostile clients try.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import nodemailer from "nodemailer";
import { rawSmtp } from "../../../test/support/raw-smtp.ts";
import { reply } from "./reply.ts";
import { type Box, codes, greeted, hangUp, serverOptions } from "./server.fixture.ts";
import { type SmtpServer, type SmtpServerOptions, startSmtpServer } from "./server.ts";
import type { SessionLimits } from "./session.ts";

const DIALOGUES = join(import.meta.dirname, "../../../../shared/data/smtp-dialogues");

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

test("EHLO offers what is there, HELP too, HELO offers nothing", async () => {
  const smtp = await client();
  const hello = await smtp.ask("EHLO client.example");
  assert.deepEqual(hello.lines, [
    "250-mx.postern.test",
    "250-PIPELINING",
    "250-SIZE 1000000",
    "250-8BITMIME",
    "250-SMTPUTF8",
    "250-STARTTLS",
    "250-ENHANCEDSTATUSCODES",
    "250 HELP",
  ]);
  assert.deepEqual((await smtp.ask("HELO client.example")).lines, ["250 mx.postern.test"]);
});

test("a door's proxy says once how its client speaks TLS, and no client says it for itself", async () => {
  const word = "XCLIENT ADDR=192.0.2.7 LOGIN=tls:TLSv1.3/TLS_AES_256_GCM_SHA384 NAME=[UNAVAILABLE]";
  const proxied = { isProxy: () => true, proxies_tell_tls: true };
  const behind = await startSmtpServer(options({}, proxied));
  const plain = await startSmtpServer(options({}, { isProxy: () => true }));
  const opened = async (port: number) => {
    const smtp = await rawSmtp(port);
    smtp.write("PROXY TCP4 192.0.2.7 192.0.2.1 4711 25\r\n");
    await smtp.reply();
    await smtp.ask("EHLO proxy.example");
    return smtp;
  };
  const mail = { from: "a@sender.example", to: ["b@rcpt.example"], content: "Subject: x\r\n\r\nx\r\n" };
  const smtp = await opened(behind.port);
  const again = await smtp.ask(word);
  assert.deepEqual(again.lines, ["220 mx.postern.test ESMTP Postern"]);
  assert.equal((await smtp.ask(word)).code, 502, "once");
  assert.equal((await smtp.ask("MAIL FROM:<a@sender.example>")).code, 503, "the session is a new one");
  assert.equal((await smtp.deliver(mail)).code, 250);
  const [{ client: first } = { client: null }] = box.kept;
  assert.deepEqual([first?.ip, first?.protocol, first?.tls], ["192.0.2.7", "ESMTPS", "TLSv1.3 TLS_AES_256_GCM_SHA384"]);

  const clear = await opened(behind.port);
  assert.equal((await clear.ask("XCLIENT ADDR=192.0.2.7 NAME=[UNAVAILABLE]")).code, 220);
  assert.equal((await clear.deliver(mail)).code, 250);
  assert.deepEqual([box.kept[1]?.client.protocol, box.kept[1]?.client.tls], ["ESMTP", null]);
  assert.equal((await clear.ask(word)).code, 502, "what comes later is the client's");
  const late = await opened(behind.port);
  assert.equal((await late.ask("MAIL FROM:<a@sender.example>")).code, 250);
  assert.equal((await late.ask(word)).code, 502, "behind MAIL it is the client's");
  const other = await opened(plain.port);
  assert.equal((await other.ask(word)).code, 502, "no door");
  hangUp();
  for (const one of [smtp, clear, late, other]) one.destroy();
  await Promise.all([behind.stop(1_000), plain.stop(1_000)]);
});

test("a mail by nodemailer arrives as it was sent, over STARTTLS, and its client is described", async () => {
  const transport = nodemailer.createTransport({
    host: "127.0.0.1",
    port: server.port,
    tls: { rejectUnauthorized: false },
  });
  await transport.sendMail({ from: "a@sender.example", to: "b@rcpt.example", subject: "Hi", text: "..\n.x\nend" });
  transport.close();
  const [mail] = box.kept;
  assert.deepEqual([mail?.from, mail?.to], ["a@sender.example", ["b@rcpt.example"]]);
  assert.match(String(mail?.content), /\r\n\r\n\.\.\r\n\.x\r\nend\r\n$/);
  assert.equal(mail?.client.protocol, "ESMTPS");
  assert.match(mail?.client.tls ?? "", /^TLSv1\.3 TLS_/);
});

test("a whole pipelined transaction is answered in order, and every reply but 354 has an enhanced code", async () => {
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
  assert.equal(box.kept.length, 1);
  assert.equal(String(box.kept[0]?.content), "Subject: x\r\n\r\nHello\r\n");
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
  ["a name with a space, as some machines have it", ["EHLO JUMPIN' JUPITER", "MAIL FROM:<a@b.example>"], [250, 250]],
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
    "a sender whose domain cannot exist",
    ["EHLO x", ...["xn----", "b%c"].map((d) => `MAIL FROM:<a@${d}>`)],
    [250, 501, 501],
  ],
  [
    "paths of 254 octets and of 255",
    [
      "EHLO x",
      ...[245, 244].map((n) => `MAIL FROM:<${"a".repeat(n)}@b.example>`),
      `RCPT TO:<${"a".repeat(245)}@b.example>`,
    ],
    [250, 501, 250, 501],
  ],
  ...["localhost", "web_1.b.example", "-b.example", "b.example.", "[192.0.2.1]", "[IPv6:2001:db8::1]"].map(
    (domain) =>
      [`a sender at ${domain}, as machines are called`, ["EHLO x", `MAIL FROM:<a@${domain}>`], [250, 250]] as const,
  ),
  ...["b..example", `${"b".repeat(64)}.example`].map(
    (domain) => [`a sender at ${domain}, whom SPF judges`, ["EHLO x", `MAIL FROM:<a@${domain}>`], [250, 250]] as const,
  ),
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
    const smtp = await client();
    assert.deepEqual(await codes(smtp, [...lines]), [...wanted]);
    smtp.destroy();
  });
}

test("a source route is ignored, not followed", async () => {
  const smtp = await client();
  await codes(smtp, [
    "EHLO x",
    "MAIL FROM:<@relay.example,@other.example:a@b.example>",
    "RCPT TO:<@us.example:c@d.example>",
  ]);
  await smtp.ask("DATA");
  smtp.write("x\r\n.\r\n");
  await smtp.reply();
  assert.deepEqual([box.kept[0]?.from, box.kept[0]?.to], ["a@b.example", ["c@d.example"]]);
});

test("every end of a transaction discards it", async () => {
  const smtp = await client();
  const begin = ["EHLO x", "MAIL FROM:<a@b.example>", "RCPT TO:<c@d.example>", "DATA"];
  const afterwards = async () => [(await smtp.ask("RCPT TO:<c@d.example>")).code, (await smtp.ask("DATA")).code];
  await codes(smtp, begin);
  smtp.write("x\r\n.\r\n");
  assert.equal((await smtp.reply()).code, 250);
  assert.deepEqual(await afterwards(), [503, 503], "after a message that was taken");
  box.finish = async () => reply(554, "5.7.1", "no");
  await codes(smtp, begin);
  smtp.write("x\r\n.\r\n");
  assert.equal((await smtp.reply()).code, 554);
  assert.deepEqual(await afterwards(), [503, 503], "after one that was refused");
  box.finish = async () => {
    throw new Error("broken");
  };
  await codes(smtp, begin);
  smtp.write("x\r\n.\r\n");
  assert.match((await smtp.reply()).text, /^451 4\.3\.0 /);
  assert.deepEqual(await afterwards(), [503, 503], "after our own fault");
  assert.equal(box.failures.length, 1);
  await codes(smtp, begin);
  smtp.write(`${"x".repeat(998)}\r\n`.repeat(1_100));
  smtp.write(".\r\n");
  assert.match((await smtp.reply()).text, /^552 5\.3\.4 /);
  assert.deepEqual(await afterwards(), [503, 503], "after one that was too large");
  assert.equal(box.kept.length, 1);
});

test("what was said in clear behind STARTTLS does not count", async () => {
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
  assert.deepEqual(box.kept, []);
  await quick.stop(100);
});

test("the conversations of another server's tests get the same class of answers", async (t) => {
  if (!existsSync(DIALOGUES)) return t.skip("the shared data folder is missing");
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
  assert.equal(box.kept.length, 3);
  assert.match(String(box.kept[2]?.content), /^From: Mailer daemon <somewhere@horns\.com>\r\n/);
  assert.match(String(box.kept[2]?.content), /\r\nMuahahahaha\r\n\r\n\.x\r\n\r\n\.\r\n\r\nThis is stuffy\.\r\n\r\n$/);
});

/** `c -> line`, `c ~> 'bytes'`, `c <~ 250`, `c <- text`, `c <... text`: the class of the code is compared. */
async function playDialogue(script: string): Promise<void> {
  const smtp = await rawSmtp(server.port);
  for (const line of script.split("\n")) {
    const [, kind, rest = ""] = /^c (->|~>|<~|<-|<\.\.\.) ?(.*)$/.exec(line) ?? [];
    if (kind === "->") smtp.write(Buffer.from(`${rest}\r\n`));
    else if (kind === "~>") smtp.write(JSON.parse(`"${rest.slice(1, -1)}"`));
    else if (kind) assert.equal((await smtp.reply()).text[0], rest[0], `${line} in\n${script}`);
  }
}
