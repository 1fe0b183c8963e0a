// What is rarely in mail and would hold a reply: it leaves without the address, and what cannot be written again is held.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { deflateSync, gzipSync } from "node:zlib";
import PostalMime from "postal-mime";
import { buildReply } from "../reply.ts";
import { A, D, HEAD, order } from "../reply-order.fixture.ts";
import { createHider, type SentContent } from "../sent/sent-content.ts";

const NONE: SentContent = { key: "00", digests: [], tokens: [] };

function replyOf(body: string, sent = NONE) {
  return buildReply(Buffer.from(`${HEAD}${body}`.replace(/\r?\n/g, "\r\n")), { ...order(), sent });
}

function withFile(type: string, content: Buffer | string, more = "", sent = NONE) {
  const file = `Content-Type: ${type}\nContent-Transfer-Encoding: base64\n\n${Buffer.from(content).toString("base64")}`;
  return replyOf(`Content-Type: multipart/mixed; boundary=b\n\n--b\n\nsee\n${more}\n--b\n${file}\n--b--\n`, sent);
}

/** The file as its reader gets it. */
async function arrived(type: string, content: Buffer | string): Promise<string> {
  const result = withFile(type, content);
  assert.equal(result.kind, "built", String(content));
  const { attachments } = await PostalMime.parse(result.kind === "built" ? result.bytes : "");
  return Buffer.from(attachments[0]?.content as ArrayBuffer).toString();
}

function uuencoded(text: string): string {
  const octets = Buffer.from(text);
  const sign = (six: number) => (six === 0 ? "`" : String.fromCharCode(six + 32));
  let lines = "";
  for (let at = 0; at < octets.length; at += 45) {
    const some = octets.subarray(at, at + 45);
    lines += sign(some.length);
    for (let n = 0; n < some.length; n += 3) {
      const [a = 0, b = 0, c = 0] = some.subarray(n, n + 3);
      lines += [a >> 2, ((a & 3) << 4) | (b >> 4), ((b & 15) << 2) | (c >> 6), c & 63].map(sign).join("");
    }
    lines += "\n";
  }
  return `begin 644 a.txt\n${lines}\`\nend\n`;
}

const wide = (text: string) => Buffer.from(text, "utf16le");
const PEM = (text: string) =>
  `-----BEGIN CERTIFICATE-----\n${Buffer.from(`0\x82 ${text} and more of it`).toString("base64").replace(/.{30}/g, "$&\n")}\n-----END CERTIFICATE-----\n`;
const KEY = `-----BEGIN PGP PUBLIC KEY BLOCK-----\nVersion: X\n\n${Buffer.from(`\x99\x01Anna <${D}> and more of a key`).toString("base64")}\n=abcd\n-----END PGP PUBLIC KEY BLOCK-----\n`;

describe("a file in a reply", () => {
  it("says the alias in the code in which it said the mailbox", async () => {
    const base64 = (text: string) => Buffer.from(text).toString("base64");
    const forms: ((email: string) => string)[] = [
      (email) => `open https://t.example/open/${base64(email).replace(/=+$/, "")}/x.gif now\n`,
      (email) => `https://t.example/?u=x${base64(`to:${email}`)}\n`,
      (email) => `https://t.example/?u=${Buffer.from(`{"to":"${email}","by":"ÿÿ?>>~"}`).toString("base64url")}\n`,
      (email) => `id;${Buffer.from(email).toString("hex")};1\n`,
      (email) =>
        `/Author<${Buffer.from(wide(`\ufeff${email}`))
          .swap16()
          .toString("hex")
          .toUpperCase()}>\n`,
      (email) => `see ${wide(email).toString("base64")}\n`,
      (email) => uuencoded(`mail ${email}\n${"and more lines of a file\n".repeat(5)}`),
    ];
    for (const form of forms) assert.equal(await arrived("text/csv; name=a.csv", form(D)), form(A));
  });

  it("says the alias where it was pasted from the source of a mail, or broken into lines", async () => {
    assert.equal(await arrived("text/csv; name=a.csv", `to;${D.replace("@", "=40")};x`), `to;${A};x`);
    assert.equal(await arrived("text/plain; name=a.txt", "to anna.real@home.\nreal.example now"), `to ${A} now`);
    assert.equal(await arrived("text/plain; name=a.txt", "> anna.real@home. \n> real.example now"), `> ${A} now`);
  });

  it("that people read loses keys, signatures and certificates, and its author is informed", async () => {
    assert.equal(await arrived("text/plain; name=notes.txt", `before\n${KEY}behind\n`), "before\nbehind\n");
    const signed = `-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n- -- yes\n${KEY.replaceAll("PUBLIC KEY BLOCK", "SIGNATURE")}`;
    assert.equal(await arrived("text/plain; name=notes.txt", signed), "-- yes\n");
    const kept = "-----BEGIN CERTIFICATE-----\nhidden\n-----END CERTIFICATE-----\n";
    assert.equal(await arrived("text/plain; name=notes.txt", `x\n${PEM(D)}`), `x\n${kept}`);
    const result = withFile("text/plain; name=notes.txt", KEY);
    const left = result.kind === "built" ? result.changes.filter(({ place }) => place === "file") : [];
    assert.deepEqual(left, [
      { where: "part 2 of the message", place: "file", kind: "left_out", detail: "application/pgp", count: 1 },
    ]);
  });

  it("is held where a program needs what would go, and where a code holds no text", () => {
    const octets = Buffer.from(`\x08\x01\x12\x1a${D}\x18\x05`, "latin1").toString("base64");
    assert.equal(withFile("text/x-sh; name=run.sh", `gpg --import <<X\n${KEY}X\n`).kind, "held");
    assert.equal(withFile("text/plain; name=a.txt", KEY.replaceAll("PUBLIC KEY BLOCK", "MESSAGE")).kind, "held");
    assert.equal(withFile("text/csv; name=a.csv", `token;${octets}\n`).kind, "held");
    assert.equal(withFile("text/csv; name=a.csv", uuencoded(`\x00\x01${D}\x02`)).kind, "held");
  });

  it("comes back as its reader sent it, also beside what is written again", async () => {
    const token = { reverse: `r.${"c".repeat(26)}@mask.example`, email: D };
    const file = `a;${Buffer.from(D).toString("hex")};https://x.example/?u=${Buffer.from(D).toString("base64")}\n${uuencoded(D)}`;
    for (const guess of [file, file.replace(Buffer.from(D).toString("hex"), "0".repeat(54))]) {
      const hider = createHider([token], "00");
      assert.equal(hider.file(guess).text, guess);
      const sent = { key: "00", digests: [...hider.digests], tokens: [token] };
      const own = `see ${D.replace("@", "=40")} ${PEM(D)}`;
      const result = withFile("text/csv; name=a.csv", guess, own, sent);
      assert.equal(result.kind, "built");
      const mail = await PostalMime.parse(result.kind === "built" ? result.bytes : "");
      assert.equal(Buffer.from(mail.attachments[0]?.content as ArrayBuffer).toString(), guess);
      assert.doesNotMatch(mail.text ?? "", /anna/);
    }
  });
});

describe("the text of a reply", () => {
  const textOf = async (type: string, text: string) => {
    const result = replyOf(`Content-Type: ${type}\n\n${text}\n`);
    assert.equal(result.kind, "built", text);
    const mail = await PostalMime.parse(result.kind === "built" ? result.bytes : "");
    return (type === "text/html" ? (mail.html ?? "") : (mail.text ?? "")).trim();
  };

  it("loses runs that hold the address in base32, packed, or in base64 within base64", async () => {
    const url = (text: string | Buffer) => Buffer.from(text).toString("base64url");
    const bits = [...Buffer.from(D)].map((octet) => octet.toString(2).padStart(8, "0")).join("");
    const base32 = (bits.match(/.{1,5}/g) ?? [])
      .map((five) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[Number.parseInt(five.padEnd(5, "0"), 2)])
      .join("");
    const packed = [gzipSync, deflateSync].map((pack) => url(pack(`{"id":7,"mail":"${D}"}`)));
    for (const run of [base32, base32.toLowerCase(), url(url(`${D} `)), ...packed]) {
      assert.equal(
        await textOf("text/plain", `see https://t.example/${run} there`),
        "see https://t.example/hidden there",
      );
      assert.equal(await textOf("text/html", `<p>see ${run}</p>`), "<p>see hidden</p>");
    }
  });

  it("says the alias in uuencode, in the lines of a quote and of HTML", async () => {
    const lines = uuencoded(`mail ${D}`).trim().split("\n");
    const alias = uuencoded(`mail ${A}`).trim().split("\n");
    assert.equal(await textOf("text/plain", `> ${lines.join("\n> ")}`), `> ${alias.join("\n> ")}`);
    const escaped = (all: string[]) =>
      `<pre>${all.map((line) => line.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;")).join("<br>")}</pre>`;
    assert.equal(await textOf("text/html", escaped(lines)), escaped(alias));
  });

  it("says the alias in HTML that was made of a quote, or of the source of a mail", async () => {
    assert.equal(await textOf("text/html", "<pre>> anna.real@home. <br>> real.example</pre>"), `<pre>> ${A}<br></pre>`);
    assert.equal(await textOf("text/html", `<pre>${D.replace("@", "=40")}</pre>`), `<pre>${A}</pre>`);
  });

  it("loses a key whose lines end with the marks of a quote", async () => {
    assert.equal(await textOf("text/plain", `Yes\n${KEY.replace(/\n/g, ">\n> ")}`), "Yes\n>");
  });

  it("is held as it was where something is left", () => {
    const text = `see ${D.replace("@", "=40")}\n${PEM(D)}`;
    const result = withFile("application/x-any; name=a.bin", `\x00${D}`, text);
    assert.ok(result.kind === "held" && result.bytes.includes("BEGIN CERTIFICATE-----\r\nMMK"), result.kind);
    assert.deepEqual(
      result.leaks.map(({ file }) => file),
      [null, "a.bin"],
    );
  });

  it("is held where there is more of it than there is time for", () => {
    const text = (count: number) => replyOf(`Content-Type: text/plain\n\n${PEM(D)}${"some words\n".repeat(count)}`);
    assert.equal(text(10_000).kind, "built");
    assert.equal(text(150_000).kind, "held");
  });

  it("is read in one pass, however much of it seems to be in a code", () => {
    for (const line of ["begin 644 a\n`\n", "begin 644 a\nM;6%I\n", "-----BEGIN X-----\n", `${"a".repeat(40)}\n`]) {
      const started = process.cpuUsage().user;
      const result = replyOf(`Content-Type: text/plain\n\n${PEM(D)}${line.repeat(1_000_000 / line.length)}`);
      assert.equal(result.kind, "built", line);
      assert.ok(process.cpuUsage().user - started < 20_000_000, line);
    }
  });
});
