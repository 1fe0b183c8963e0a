// What the owner lets happen to forwards: pictures that track are cut, and unsubscribing acts on the alias
// (POST /v1/inbound-emails/simulate).
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { C, D, IP_C, IP_D, startMaskedSimulation } from "../support/masked-simulation.ts";

const { api, ask, alias, simulate, activity, close } = await startMaskedSimulation();
after(close);

const HTML = "Content-Type: text/html; charset=utf-8\r\n";
const field = (raw: string, name: string) =>
  new RegExp(`^${name}: (.*(?:\\r\\n[ \\t].*)*)\\r$`, "m").exec(raw)?.[1]?.replace(/\r\n[ \t]/g, " ") ?? null;

test("pixels are cut where the alias wants it, and what stays comes back as it was", async () => {
  const a = await alias({ tracking_pixels: "cut" });
  const kept = await alias();
  const text = (guess: string) =>
    `<p>Grüße ${guess}</p><img src="https://t.example/${guess}.gif" width="1" height="1"><img src="https://t.example/${guess}.png">`;
  for (const guess of [D, "other@home.example"]) {
    const { messages } = await simulate({ from: C, to: a.full, head: HTML, text: text(guess) });
    const { html } = messages[0].mail;
    assert.ok(!html.includes(".gif") && html.includes(`${guess}.png`), html);
    const back = await simulate({
      to: messages[0].mail.from.address,
      head: HTML,
      text: `<blockquote>${html}</blockquote>`,
    });
    const quoted = back.messages[0].mail.html as string;
    assert.ok(quoted.includes(`<p>Grüße ${guess}</p><img src="https://t.example/${guess}.png">`), quoted);
  }
  const whole = await simulate({ from: C, to: kept.full, head: HTML, text: text("x") });
  assert.ok(whole.messages[0].mail.html.includes(".gif"));
});

test("unsubscribing by one click switches the alias off, or blocks the author", async () => {
  const original =
    "List-Unsubscribe: <https://shop.example/u/1>\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n";
  const form = { "content-type": "application/x-www-form-urlencoded" };
  for (const act of ["disable_alias", "block_sender"] as const) {
    const a = await alias({ list_unsubscribe: act });
    const [{ raw }] = (await simulate({ from: C, to: a.full, head: original })).messages;
    const links = field(raw, "List-Unsubscribe") ?? "";
    assert.ok(!links.includes("shop.example"), links);
    assert.equal(field(raw, "List-Unsubscribe-Post"), "List-Unsubscribe=One-Click");
    const path = /<https:\/\/api\.postern\.test(\/masked\/stop\/[^>]+)>/.exec(links)?.[1] ?? "";
    const shown = await api.ask("GET", path, undefined, { key: null });
    assert.equal(shown.status, 200);
    const forwards = async (from: string) => (await simulate({ from, ip: IP_C, to: a.full })).messages.length;
    assert.equal(await forwards(C), 1, "opening the link does nothing");
    assert.equal((await api.ask("POST", path, "List-Unsubscribe=One-Click", { key: null, headers: form })).status, 200);
    assert.equal(await forwards(C), 0);
    assert.equal(await forwards("friend@contact.example"), act === "disable_alias" ? 0 : 1);
    const said =
      act === "disable_alias" ? "changed: active (by unsubscribing)" : "blocked a contact (by unsubscribing)";
    assert.ok((await activity(a.id)).includes(`config sent ${said}`));
    const broken = await api.ask("POST", `${path.slice(0, -4)}AAAA`, "", { key: null, headers: form });
    assert.equal(broken.status, 404);
  }
  const plain = await alias();
  const [{ raw }] = (await simulate({ from: C, to: plain.full, head: original })).messages;
  assert.equal(field(raw, "List-Unsubscribe"), "<https://shop.example/u/1>");
});

test("unsubscribing by mail acts for the mailbox alone, and by our own subject alone", async () => {
  const a = await alias({ list_unsubscribe: "block_sender" });
  const [{ raw }] = (await simulate({ from: C, to: a.full })).messages;
  const [, to = "", subject = ""] =
    /<mailto:([^?>]+)\?subject=([^>]+)>/.exec(field(raw, "List-Unsubscribe") ?? "") ?? [];
  assert.equal(to, a.full);
  const head = `Subject: ${decodeURIComponent(subject)}\r\n`;
  const written = (from: string, line: string) => Buffer.from(`From: ${from}\r\nTo: ${a.full}\r\n${line}\r\n`);
  const forwards = async () => (await simulate({ from: C, to: a.full })).messages.length;
  const stranger = await simulate({
    to: a.full,
    from: "eve@contact.example",
    ip: IP_C,
    raw: written("eve@contact.example", head),
  });
  assert.equal(stranger.messages.length, 1, "anybody's mail with that subject is mail");
  const changed = await simulate({ to: a.full, ip: IP_D, raw: written(D, head.replace(/.\r\n$/, "x\r\n")) });
  assert.equal(changed.said, "550 5.4.6", "not our subject");
  assert.equal(await forwards(), 1);
  const { said, messages } = await simulate({ to: a.full, ip: IP_D, raw: written(D, head) });
  assert.deepEqual([said, messages.length], ["250 2.0.0", 0]);
  assert.equal(await forwards(), 0);
  assert.equal((await ask("GET", `/v1/masked/aliases/${a.id}/contacts?email=${C}`)).body.contacts[0].blocked, true);
});

test("links to write a mail lead through the alias, and come back as their author wrote them", async () => {
  const a = await alias({ display_name: "Anna" });
  const links = (guess: string) =>
    `<p><a href="mailto:Help@Contact.example?subject=order%201&amp;cc=${guess.toUpperCase()}">write</a> to help at contact.example` +
    ` or <a href='mailto:${guess}'>us</a>, <a href="mailto:${guess.replace("@", "%40")},x@y.example">them</a>` +
    ` or ${guess.replace("@", " at ")}, not <a href="mailto:${a.full}">you</a>, mailto:plain@contact.example</p>`;
  for (const guess of [D, "amma@home.example"]) {
    const { messages } = await simulate({ from: C, to: a.full, head: HTML, text: links(guess) });
    const { html, from } = messages[0].mail;
    const opened = [...html.matchAll(/href=["']mailto:([^"']*)/g)].map(([, to]) => to as string);
    assert.equal(opened.length, 4, html);
    for (const to of opened.slice(0, 3)) assert.match(to, /^r\.[a-z2-7]{26}(?:\+[a-z2-7]+)?@/);
    assert.equal(opened[3], a.full);
    assert.match(opened[0] as string, /\?subject=order%201&amp;cc=r\.[a-z2-7]{26}\+[a-z2-7]+@/);
    assert.ok(html.includes("mailto:plain@contact.example"), html);
    // Whoever follows one writes from the alias.
    const [to = ""] = (opened[0] as string).split("?");
    const written = await simulate({ to, text: "hello" });
    assert.deepEqual(
      written.messages.map(({ recipient, mail }) => [recipient.toLowerCase(), mail.from.address]),
      [["help@contact.example", a.full]],
    );
    // Its author reads it as it was, but for words that name a correspondent; nobody else learns what stood there.
    const answering = { head: HTML, text: `<blockquote>${html}</blockquote>` };
    const back = await simulate({ to: from.address, ...answering });
    const returned = links(guess).replace(/(help|anna|amma) at /g, "$1@");
    assert.ok(back.messages[0]?.mail.html.includes(returned), back.messages[0]?.mail.html);
    const other = await simulate({ to, ...answering });
    const raw = JSON.stringify(other.messages[0]?.mail);
    assert.doesNotMatch(raw, /r\.[a-z2-7]{26}/);
    if (guess === D) assert.doesNotMatch(raw.toLowerCase(), /anna(?:@|%40| at )home/);
  }
});

test("a stranger's links make no more than 20 correspondents a mail, and 200 a day", async () => {
  const a = await alias();
  const linked = async (mail: number, count: number) => {
    const all = Array.from({ length: count }, (_, at) => `<a href="mailto:l${mail}-${at}@contact.example">x</a>`);
    const { messages } = await simulate({ from: C, to: a.full, head: HTML, text: all.join("\r\n") });
    return messages[0].mail.html.match(/mailto:r\./g)?.length ?? 0;
  };
  assert.equal(await linked(0, 45), 20);
  for (let mail = 1; mail < 10; mail += 1) assert.equal(await linked(mail, 20), 20);
  assert.equal(await linked(10, 20), 0);
  assert.equal(await linked(1, 20), 20);
});
