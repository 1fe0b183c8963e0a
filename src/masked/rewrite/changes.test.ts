// What a reply says was changed in it: where, of what kind, how often, and never an address.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Change, isHiding } from "./changes.ts";
import { buildReply } from "./reply.ts";
import { D, HEAD, order, R } from "./reply-order.fixture.ts";

function changesOf(message: string, more: object = {}): Change[] {
  const built = buildReply(Buffer.from(message.replace(/\r?\n/g, "\r\n")), { ...order(), ...more });
  assert.notEqual(built.kind, "refused", JSON.stringify(built));
  return built.kind === "refused" ? [] : built.changes;
}

const said = (changes: readonly Change[]) =>
  changes.map(({ where, place, kind, detail, count }) => `${count} ${kind} ${place} ${where} ${detail ?? "-"}`);

test("an ordinary answer changes what stands for its reader, and hides nothing", () => {
  const changes = changesOf(
    `${HEAD}X-Mailer: Pear 3\n\nYes.\n\nOn Friday "Shop (shop at example.com)" <${R}> wrote:\n> When?\n`,
  );
  assert.deepEqual(said(changes), ["1 left_out header the message X-Mailer", "2 reply_address text the message -"]);
  assert.deepEqual(changes.filter(isHiding), []);
});

test("each place where the mailbox or its name stood is named by its part", () => {
  const message = `${HEAD.replace("Re: order", `Re: order of ${D}`)}Content-Type: multipart/mixed; boundary=b

--b
Content-Type: multipart/alternative; boundary=c

--c

Write to Anna <${D}>, ${D}.
--c
Content-Type: text/html

<a href="https://t.example/${Buffer.from(`to ${D} of mail`).toString("base64")}">see</a>
--c--
--b
Content-Type: text/csv; name="${D}.csv"

a,${D}
--b
Content-Type: message/rfc822

From: Anna <${D}>
Subject: before

${D}
--b
Content-Type: application/pgp-keys

x
--b--
`;
  const changes = changesOf(message, { from: { name: "K", email: "k3x@mask.example" } }).filter(isHiding);
  assert.deepEqual(said(changes).sort(), [
    "1 address file part 2 of the message -",
    "1 address file_name part 2 of the message -",
    "1 address header the message -",
    "1 address header the message in part 3 of the message -",
    "1 address text part 2 of part 1 of the message -",
    "1 address text the message in part 3 of the message -",
    "1 left_out part part 4 of the message application/pgp-keys",
    "1 name text part 1 of part 1 of the message -",
    "2 address text part 1 of part 1 of the message -",
  ]);
  assert.ok(!JSON.stringify(changes).includes("anna"));
});

test("a signature around the mail and links that a server rewrote are reported", () => {
  const link = `https://eur01.safelinks.protection.outlook.com/?url=${encodeURIComponent("https://a.example/x")}&data=1`;
  const message = `${HEAD}Content-Type: multipart/signed; boundary=b

--b

see ${link}
--b
Content-Type: application/pgp-signature

x
--b--
`;
  assert.deepEqual(said(changesOf(message)), [
    "1 left_out part the message application/pgp-signature",
    "1 link text the message -",
  ]);
});
