// Which conversation a received mail belongs to: by its parents, received here or sent from here (RFC 5322 §3.6.4).
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { rawSmtp } from "../../../test/support/raw-smtp.ts";
import { addAlias, type Receiving, startTestReceiving } from "../../../test/support/receiving.ts";

let r: Receiving;

before(async () => {
  r = await startTestReceiving();
});
after(() => r.close());

async function deliver(alias: string, subject: string, headers: string): Promise<void> {
  const smtp = await rawSmtp(r.port);
  await smtp.reply();
  const content = `${headers}Subject: ${subject}\r\n\r\nx\r\n`;
  assert.equal((await smtp.deliver({ from: "a@b.example", to: [`${alias}@in.example`], content })).code, 250);
  smtp.destroy();
}

/** Sends one of our mails; its Message-ID, with brackets. */
async function answer(headers: Record<string, string> = {}): Promise<{ id: string; message_id: string }> {
  const mail = { from: "desk@in.example", to: ["a@b.example"], subject: "Re", text_body: "x", headers };
  const { status, body } = await r.api.ask("POST", "/v1/send", mail, { key: r.api.test_key });
  assert.equal(status, 202, JSON.stringify(body));
  return { id: body.id, message_id: `<${body.message_id}>` };
}

test("a mail that answers one of our mails, or another mail, is in its thread", async () => {
  await addAlias(r, "thread");
  const { id, message_id: ours } = await answer();
  await deliver("thread", "thread", `Message-ID: <r1@b.example>\r\nIn-Reply-To: ${ours}\r\nReferences: ${ours}\r\n`);
  await r.processed("subject=thread", 1);
  await deliver("thread", "thread", `Message-ID: <r2@b.example>\r\nIn-Reply-To: <r1@b.example>\r\n`);
  await deliver("thread", "thread", `Message-ID: <r3@b.example>\r\nReferences: ${ours} <gone@b.example>\r\n`);
  await deliver("thread", "thread", "Message-ID: <other@b.example>\r\n");
  const rows = await r.processed("subject=thread", 4);
  const threads = await Promise.all(rows.map(async ({ id }) => (await r.events(id))[0]?.body.thread));
  assert.deepEqual(
    threads.map(({ matched_email_id }) => matched_email_id),
    [id, null, id, null],
  );
  assert.equal(threads[1].id, threads[0].id);
  assert.equal(threads[2].id, threads[0].id);
  assert.notEqual(threads[3].id, threads[0].id);
  assert.deepEqual(threads[0].in_reply_to, ours);
  assert.deepEqual(threads[2].references, [ours, "<gone@b.example>"]);
  const listed = await r.api.ask("GET", `/v1/inbound-emails?thread_id=${threads[0].id}`);
  assert.equal(listed.body.total, 3);
});

test("a mail that answers several finds the thread of whichever was received", async () => {
  await addAlias(r, "several");
  const receive = async (subject: string, headers: string) => {
    await deliver("several", subject, headers);
    const [row] = await r.processed(`subject=${subject}`);
    return (await r.events(row.id))[0]?.body.thread;
  };
  const asked = await receive("several1", "Message-ID: <asked@b.example>\r\n");
  const both = await receive("several2", "In-Reply-To: <never-came@b.example>\r\n <asked@b.example>\r\n");
  assert.deepEqual([both.id, both.in_reply_to], [asked.id, "<never-came@b.example>"]);
});

test("a client that names only its parent finds the thread through the mail that we sent in between", async () => {
  await addAlias(r, "chain");
  await deliver("chain", "chain", "Message-ID: <question@b.example>\r\n");
  const ours = await answer({ "In-Reply-To": "<question@b.example>", References: "<question@b.example>" });
  await deliver("chain", "chain", `In-Reply-To: ${ours.message_id}\r\n`);
  const [question, reply] = await r.processed("subject=chain", 2);
  assert.equal(reply.thread_id, question.thread_id);
});

test("a mail that names only ours belongs where the mail is that ours answered, however that one was found", async () => {
  await addAlias(r, "between");
  const receive = async (subject: string, headers: string) => {
    await deliver("between", subject, headers);
    return (await r.processed(`subject=${subject}`))[0].thread_id as string;
  };
  // X began it, or came itself in answer to a mail that never came here.
  const first = await receive("between1", "Message-ID: <x1@b.example>\r\n");
  const second = await receive("between2", "Message-ID: <x2@b.example>\r\nReferences: <elsewhere@b.example>\r\n");
  const { message_id: s1 } = await answer({ "In-Reply-To": "<x1@b.example>" });
  const { message_id: s2 } = await answer({ "In-Reply-To": "<x2@b.example>", References: "<x2@b.example>" });
  assert.equal(await receive("between3", `In-Reply-To: ${s1}\r\nReferences: ${s1}\r\n`), first);
  assert.equal(await receive("between4", `In-Reply-To: ${s2}\r\n`), second);
  const { message_id: again } = await answer({ "In-Reply-To": s1 });
  assert.equal(await receive("between5", `References: ${s1} ${again}\r\n`), first);
  assert.equal(await receive("between6", `In-Reply-To: ${again}\r\n`), first, "two of our mails in a row");
  // Nothing of it came here: all of them find the first id that anybody names.
  const { message_id: lone } = await answer({ "In-Reply-To": "<lost@b.example>" });
  const byReferences = await receive("between7", `References: ${lone}\r\n`);
  assert.equal(await receive("between8", "In-Reply-To: <lost@b.example>\r\n"), byReferences);
});
