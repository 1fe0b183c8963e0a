import assert from "node:assert/strict";
import { connect } from "node:net";
import { duplexPair } from "node:stream";
import { afterEach, describe, it } from "node:test";
import { connect as connectTls } from "node:tls";
import { rawSmtp } from "../../../test/support/raw-smtp.ts";
import { until } from "../../../test/support/until.ts";
import type { Login } from "./auth.ts";
import * as auth from "./auth.ts";
import { type Box, codes, greeted, hangUp, serverOptions } from "./server.fixture.ts";
import { type SmtpServer, type SmtpServerOptions, startSmtpServer } from "./server.ts";

const b64 = (text: string) => Buffer.from(text).toString("base64");
const PLAIN = b64("\0postern\0secret");

let server: SmtpServer | null = null;
let box: Box;
let logins: Login[];

afterEach(async () => {
  hangUp();
  await server?.stop(100);
  server = null;
});

async function start(more: Partial<SmtpServerOptions<string>> = {}): Promise<number> {
  box = { kept: [], failures: [], finish: null };
  logins = [];
  const options = serverOptions(box, {}, more);
  options.hooks.login = async (_client, login) => {
    logins.push(login);
    if (login.password === "throws") throw new Error("the database is away");
    if (login.password === "secret") return { kind: "known", user: { name: login.user } };
    return { kind: "refused", reply: auth.INVALID, slow: login.password === "stale" };
  };
  server = await startSmtpServer(options);
  return server.port;
}

/** A connection under TLS that has said EHLO; the EHLO answer's lines. */
async function secured(port: number) {
  const smtp = await greeted(port);
  await smtp.ask("EHLO client.example");
  await smtp.ask("STARTTLS");
  await smtp.startTls();
  const offers = (await smtp.ask("EHLO client.example")).lines;
  return { smtp, offers };
}

describe("AUTH", () => {
  it("is neither offered nor taken in the clear, and nothing goes without it", async () => {
    const port = await start();
    const smtp = await greeted(port);
    const offers = (await smtp.ask("EHLO client.example")).lines;
    assert.ok(offers.some((line) => line.includes("STARTTLS")) && !offers.some((line) => line.includes("AUTH")));
    const early = await smtp.ask(`AUTH PLAIN ${PLAIN}`);
    assert.match(early.text, /^538 5\.7\.11 /);
    assert.match((await smtp.ask("MAIL FROM:<a@b.example>")).text, /^530 5\.7\.0 .*STARTTLS/);
    assert.deepEqual(await codes(smtp, ["RCPT TO:<a@b.example>", "DATA"]), [503, 503]);
    assert.deepEqual(logins, []);
  });

  it("is offered under TLS and asked for before MAIL", async () => {
    const { smtp, offers } = await secured(await start());
    assert.ok(
      offers.some((line) => /^250[- ]AUTH PLAIN LOGIN$/.test(line)),
      offers.join("|"),
    );
    assert.ok(!offers.some((line) => line.includes("STARTTLS")));
    assert.match((await smtp.ask("MAIL FROM:<a@b.example>")).text, /^530 5\.7\.0 authentication required/);
  });

  it("takes PLAIN with an initial response and in two steps, and LOGIN with and without one", async () => {
    const port = await start();
    const dialogues: [string, number][][] = [
      [[`AUTH PLAIN ${PLAIN}`, 235]],
      [[`AUTH PLAIN ${b64("postern\0postern\0secret")}`, 235]],
      [
        ["auth plain", 334],
        [PLAIN, 235],
      ],
      [
        ["AUTH LOGIN", 334],
        [b64("postern"), 334],
        [b64("secret"), 235],
      ],
      [
        [`AUTH LOGIN ${b64("postern")}`, 334],
        [b64("secret"), 235],
      ],
    ];
    for (const dialogue of dialogues) {
      const { smtp } = await secured(port);
      const lines = dialogue.map(([line]) => line);
      assert.deepEqual(
        await codes(smtp, lines),
        dialogue.map(([, code]) => code),
      );
      assert.match((await smtp.ask("NOOP")).text, /^250/);
      const again = await smtp.ask(`AUTH PLAIN ${PLAIN}`);
      assert.match(again.text, /^503 5\.5\.1 /);
      const mail = await smtp.deliver({ from: "a@b.example", to: ["c@d.example"], content: "Subject: x\r\n\r\nx\r\n" });
      assert.equal(mail.code, 250);
    }
    assert.deepEqual(new Set(logins.map(({ user, password }) => `${user}/${password}`)), new Set(["postern/secret"]));
    assert.deepEqual([...new Set(box.kept.map(({ client }) => client.protocol))], ["ESMTPSA"]);
    assert.deepEqual(box.kept[0]?.client.user, { name: "postern" });
  });

  it("shows the challenges of LOGIN that clients look for", async () => {
    const { smtp } = await secured(await start());
    assert.equal((await smtp.ask("AUTH LOGIN")).text, "334 VXNlcm5hbWU6");
    assert.equal((await smtp.ask(b64("postern"))).text, "334 UGFzc3dvcmQ6");
    assert.equal((await smtp.ask("*")).code, 501);
    assert.equal((await smtp.ask("AUTH PLAIN")).text, "334");
  });

  it("answers what is wrong with the codes of RFC 4954, and one can go on", async () => {
    const port = await start();
    const cases: [lines: string[], last: RegExp][] = [
      [["AUTH"], /^501 5\.5\.4 /],
      [["AUTH CRAM-MD5"], /^504 5\.5\.4 /],
      [["AUTH XOAUTH2 dGVzdA=="], /^504 5\.5\.4 /],
      [[`AUTH PLAIN ${PLAIN} more`], /^501 5\.5\.4 /],
      [["AUTH PLAIN §"], /^501 5\.5\.2 /],
      [["AUTH PLAIN dGV"], /^501 5\.5\.2 /],
      [["AUTH PLAIN ="], /^501 5\.5\.2 /],
      [[`AUTH PLAIN ${b64("only one word")}`], /^501 5\.5\.2 /],
      [["AUTH PLAIN", "*"], /^501 5\.7\.0 /],
      [["AUTH LOGIN", "not base64!"], /^501 5\.5\.2 /],
      [[`AUTH PLAIN ${b64("\0postern\0wrong")}`], /^535 5\.7\.8 /],
      [[`AUTH PLAIN ${b64("boss\0postern\0secret")}`], /^535 5\.7\.8 /],
      [["AUTH LOGIN", b64("postern"), b64("wrong")], /^535 5\.7\.8 /],
      [[`AUTH PLAIN ${b64("\0postern\0throws")}`], /^451 4\.3\.0 /],
    ];
    for (const [lines, last] of cases) {
      const { smtp } = await secured(port);
      let text = "";
      for (const line of lines) text = (await smtp.ask(line)).text;
      assert.match(text, last, lines.join(" / "));
      assert.match((await smtp.ask(`AUTH PLAIN ${PLAIN}`)).text, /^235 2\.7\.0 /, lines.join(" / "));
    }
    assert.equal(box.failures.length, 1);
    const { smtp } = await secured(port);
    assert.equal((await smtp.ask(`AUTH PLAIN ${PLAIN}`)).code, 235);
    assert.deepEqual(await codes(smtp, ["MAIL FROM:<a@b.example> AUTH=<>", "RSET"]), [250, 250]);
    assert.deepEqual(await codes(smtp, ["MAIL FROM:<a@b.example> AUTH=x@y.example SIZE=10", "AUTH PLAIN"]), [250, 503]);
  });

  it("ends the connection with the third attempt that fails; what was no attempt does not count", async () => {
    const { smtp } = await secured(await start());
    const wrong = `AUTH PLAIN ${b64("\0postern\0wrong")}`;
    const lines = [wrong, "AUTH CRAM-MD5", "AUTH", "AUTH PLAIN", "*", "AUTH PLAIN dGV", "NOOP"];
    assert.deepEqual(await codes(smtp, lines), [535, 504, 501, 334, 501, 501, 250]);
    assert.match((await smtp.ask(wrong)).text, /^421 4\.7\.0 too many failed logins/);
    await smtp.closed;
  });

  it("waits with the answer to a wrong login that is slow, which gives up its place to a right one", async () => {
    for (const [connections_max, per_client_max] of [
      [100, 2],
      [2, 100],
    ] as const) {
      const port = await start({
        slow_login_ms: 60_000,
        isTrusted: () => false,
        client_limits: { connections_max, load_share: 0.5, per_client_max, per_client_minute_max: 100 },
      });
      const stale = [(await secured(port)).smtp, (await secured(port)).smtp];
      for (const smtp of stale) smtp.write(`AUTH PLAIN ${b64("\0postern\0stale")}\r\n`);
      await until("two logins that wait", () => logins.length === 2);
      await new Promise(setImmediate);
      const { smtp } = await secured(port);
      assert.equal((await smtp.ask(`AUTH PLAIN ${PLAIN}`)).code, 235);
      assert.match((await (stale[0] as (typeof stale)[0]).reply()).text, /^421 4\.7\.0 too many failed logins/);
      assert.equal(server?.connections(), 2);
      await server?.stop(1_000);
      assert.match((await (stale[1] as (typeof stale)[0]).reply()).text, /^421 /);
    }
  });

  it("that waited does not count among the connections of its client's minute", async () => {
    const port = await start({
      slow_login_ms: 1,
      isTrusted: () => false,
      client_limits: { connections_max: 100, load_share: 0.5, per_client_max: 10, per_client_minute_max: 2 },
    });
    for (let n = 0; n < 5; n += 1) {
      const { smtp } = await secured(port);
      assert.equal((await smtp.ask(`AUTH PLAIN ${b64("\0postern\0stale")}`)).code, 535);
      await smtp.ask("QUIT");
    }
    const { smtp } = await secured(port);
    assert.equal((await smtp.ask(`AUTH PLAIN ${PLAIN}`)).code, 235);
  });

  it("is a command of ESMTP, and none at all where nobody logs in", async () => {
    const { smtp } = await secured(await start());
    assert.equal((await smtp.ask("HELO client.example")).code, 250);
    assert.match((await smtp.ask(`AUTH PLAIN ${PLAIN}`)).text, /^503 5\.5\.1 /);
    await server?.stop(100);
    const open = { kept: [], failures: [], finish: null };
    server = await startSmtpServer(serverOptions(open));
    const other = await secured(server.port);
    assert.ok(!other.offers.some((line) => line.includes("AUTH")));
    assert.match((await other.smtp.ask(`AUTH PLAIN ${PLAIN}`)).text, /^502 5\.5\.1 /);
    assert.equal((await other.smtp.ask("MAIL FROM:<a@b.example> AUTH=<>")).code, 555);
  });

  it("ends with a connection that ends in the middle of it, and with a line that is too long", async () => {
    const port = await start();
    const first = await secured(port);
    await first.smtp.ask("AUTH LOGIN");
    first.smtp.destroy();
    const second = await secured(port);
    await second.smtp.ask("AUTH LOGIN");
    second.smtp.write(`${"A".repeat(3_000)}\r\n`);
    assert.match((await second.smtp.reply()).text, /^500 5\.5\.2 line too long/);
    await second.smtp.closed;
    assert.deepEqual([logins, box.failures], [[], []]);
  });
});

describe("a server with implicit TLS", () => {
  it("begins with the handshake and offers no STARTTLS", async () => {
    const port = await start({ implicit_tls: true });
    const smtp = await rawSmtp(port);
    await smtp.startTls();
    assert.equal((await smtp.reply()).code, 220);
    const offers = (await smtp.ask("EHLO client.example")).lines;
    assert.ok(
      offers.some((line) => line.includes("AUTH PLAIN LOGIN")) && !offers.some((line) => line.includes("STARTTLS")),
    );
    assert.equal((await smtp.ask("STARTTLS")).code, 503);
    assert.equal((await smtp.ask(`AUTH PLAIN ${PLAIN}`)).code, 235);
    smtp.destroy();
  });

  it("knows the client that a load balancer speaks for", async () => {
    const port = await start({ implicit_tls: true, isProxy: (ip) => ip === "127.0.0.1" });
    const smtp = await rawSmtp(port);
    smtp.write("PROXY TCP4 192.0.2.7 192.0.2.8 4711 465\r\n");
    await smtp.startTls();
    assert.equal((await smtp.reply()).code, 220);
    await smtp.ask("EHLO client.example");
    assert.equal((await smtp.ask(`AUTH PLAIN ${PLAIN}`)).code, 235);
    const mail = await smtp.deliver({ from: "a@b.example", to: ["c@d.example"], content: "x\r\n" });
    assert.equal(mail.code, 250);
    assert.equal(box.kept[0]?.client.ip, "192.0.2.7");
    smtp.destroy();
  });

  it("takes a login in the clear where the load balancer ends TLS, of the clients that it speaks for alone", async () => {
    const port = await start({ proxies_end_tls: true, isProxy: (ip) => ip === "127.0.0.9" });
    const behind = await rawSmtp(port, { localAddress: "127.0.0.9" });
    behind.write("PROXY TCP4 192.0.2.7 192.0.2.8 4711 587\r\n");
    assert.equal((await behind.reply()).code, 220);
    const offers = (await behind.ask("EHLO client.example")).text;
    assert.deepEqual([/AUTH PLAIN LOGIN/.test(offers), /STARTTLS/.test(offers)], [true, false]);
    assert.equal((await behind.ask(`AUTH PLAIN ${PLAIN}`)).code, 235);
    behind.destroy();
    const health = await rawSmtp(port, { localAddress: "127.0.0.9" });
    health.write("PROXY UNKNOWN\r\n");
    const direct = await rawSmtp(port);
    for (const smtp of [health, direct]) {
      assert.equal((await smtp.reply()).code, 220);
      await smtp.ask("EHLO client.example");
      assert.equal((await smtp.ask(`AUTH PLAIN ${PLAIN}`)).code, 538);
      smtp.destroy();
    }
  });

  it("loses nothing when the handshake begins in the packet of the load balancer's header", async () => {
    const port = await start({ implicit_tls: true, isProxy: (ip) => ip === "127.0.0.1" });
    const wire = connect(port, "127.0.0.1");
    const [near, far] = duplexPair();
    let header = "PROXY TCP4 192.0.2.7 192.0.2.8 4711 465\r\n";
    far.on("data", (bytes: Buffer) => {
      wire.write(Buffer.concat([Buffer.from(header), bytes]));
      header = "";
    });
    wire.on("data", (bytes) => far.write(bytes)).on("error", () => undefined);
    const secure = connectTls({ socket: near, rejectUnauthorized: false });
    const greeting = await new Promise<string>((resolve) =>
      secure.once("data", (bytes: Buffer) => resolve(String(bytes))),
    );
    assert.match(greeting, /^220 /);
    secure.destroy();
    wire.destroy();
  });

  it("ends a connection that speaks in the clear", async () => {
    const port = await start({ implicit_tls: true });
    const smtp = await rawSmtp(port);
    smtp.write("EHLO client.example\r\n");
    await smtp.closed;
    assert.ok(!smtp.received().includes("250"));
    assert.deepEqual(box.failures, []);
  });
});
