// Mail that comes in beside a fault: the client comes again when it is deferred, and the verdict can fail.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer as createHttpServer, type Server as HttpServer } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { judgeMailIn, type MailIn, mailIn, sendMailIn } from "./mail-in.ts";
import type { Stage } from "./stage.ts";

type Stored = { id: string; subject: string; status: string; content: string };

/** What our own server has of the mail, and what it sent to its webhook. */
const stored: Stored[] = [];
const events: { email_id: string; event_id: string }[] = [];
/** Answers in place of the next good ones: to MAIL, and behind the final dot. */
const instead = { mail: [] as string[], dot: [] as string[] };

let dir: string;
let mx: Server;
let api: HttpServer;
let stage: Stage;

before(async () => {
  dir = mkdtempSync(join(tmpdir(), "postern-mail-in-"));
  mx = createServer(serve).listen(0, "127.0.0.1");
  api = createHttpServer((request, response) => {
    response.end(stored.find(({ id }) => request.url === `/v1/inbound-emails/${id}/raw`)?.content);
  }).listen(0, "127.0.0.1");
  await Promise.all([mx, api].map((server) => new Promise((done) => server.once("listening", done))));
  const portOf = (server: Server | HttpServer) => (server.address() as AddressInfo).port;
  stage = {
    dir,
    settings: {
      base_url: `http://127.0.0.1:${portOf(api)}`,
      live_key: "k",
      env: { POSTERN_MX: `127.0.0.1:${portOf(mx)}` },
    },
    rows: async () => stored,
    receiver: {
      get requests() {
        return events.map(({ email_id, event_id }) => ({
          body: Buffer.from(JSON.stringify({ event: "email.received", email_id })),
          headers: { "x-service-event-id": event_id },
        }));
      },
    },
    died: [],
  } as unknown as Stage;
});
after(() => {
  mx?.close();
  api?.close();
  api?.closeAllConnections();
  rmSync(dir, { recursive: true, force: true });
});

function serve(socket: Socket): void {
  let text = "";
  let isMessage = false;
  socket.on("error", () => undefined);
  socket.write("220 here\r\n");
  socket.on("data", (chunk) => {
    text += chunk;
    for (let end = endOf(text, isMessage); end !== -1; end = endOf(text, isMessage)) {
      const [taken, rest] = [text.slice(0, end), text.slice(end + (isMessage ? 5 : 2))];
      text = rest;
      if (isMessage) takeMessage(socket, `${taken}\r\n`);
      else socket.write(`${taken.startsWith("MAIL") ? (instead.mail.shift() ?? "250 ok") : replyTo(taken)}\r\n`);
      isMessage = !isMessage && taken === "DATA";
    }
  });
}

function endOf(text: string, isMessage: boolean): number {
  return text.indexOf(isMessage ? "\r\n.\r\n" : "\r\n");
}

function replyTo(command: string): string {
  return command === "DATA" ? "354 go" : "250 ok";
}

function takeMessage(socket: Socket, content: string): void {
  const id = `id-${stored.length + 1}`;
  const subject = /^Subject: (.*)\r$/m.exec(content)?.[1] ?? "";
  stored.push({ id, subject, status: "delivered", content });
  events.push({ email_id: id, event_id: `event of ${id}` });
  const reply = instead.dot.shift() ?? `250 taken as ${id}`;
  if (reply === "") socket.destroy();
  else socket.write(`${reply}\r\n`);
}

/** Three mails that were sent while this was answered, and what is done to the record before it is judged. */
async function play(answers: Partial<typeof instead>, spoil: () => void = () => undefined) {
  stored.length = 0;
  events.length = 0;
  Object.assign(instead, { mail: [], dot: [], ...answers });
  const load: MailIn = mailIn(stage, { name: "x", count: 3, connections: 1, pause_ms: 0 });
  await sendMailIn(load);
  load.recorder.close();
  spoil();
  return judgeMailIn(stage, load);
}

describe("mail that comes in", () => {
  it("is sent again when it is deferred, which is recognised by its reason, and passes when each is there once", async () => {
    const verdict = await play({ mail: ["452 4.3.1 no room", "452 4.3.1 no room", "451 4.3.0 later", "250 ok"] });
    const { ok, acknowledged, no_room, put_off, duplicates } = verdict;
    assert.deepEqual(
      { ok, acknowledged, no_room, put_off, duplicates },
      {
        ...{ ok: true, acknowledged: 3, no_room: 2, put_off: 1, duplicates: 0 },
      },
    );
  });

  it("may be there twice where its sender could not know: a broken connection, 451 behind the dot", async () => {
    const verdict = await play({ dot: ["", "451 4.3.0 later"] });
    assert.deepEqual([verdict.ok, verdict.duplicates, verdict.flagged], [true, 2, 2]);
    const refused = await play({ dot: ["452 4.3.1 no room"] });
    assert.deepEqual([refused.ok, refused.duplicates, refused.flagged], [false, 1, 0]);
  });

  it("fails when one is lost, changed, not processed, not reported, or reported twice", async () => {
    const first = (): Stored => stored[0] as Stored;
    const lost = await play({}, () => stored.shift());
    assert.deepEqual([lost.ok, lost.lost], [false, 1]);
    const damaged = await play({}, () => Object.assign(first(), { content: first().content.slice(0, -3) }));
    assert.deepEqual([damaged.ok, damaged.damaged], [false, 1]);
    const waiting = await play({}, () => Object.assign(first(), { status: "received" }));
    assert.deepEqual([waiting.ok, waiting.not_processed], [false, 1]);
    const silent = await play({}, () => events.shift());
    assert.deepEqual([silent.ok, silent.webhooks_missing], [false, 1]);
    const twice = await play({}, () => events.push({ email_id: first().id, event_id: "another" }));
    assert.deepEqual([twice.ok, twice.events_twice], [false, 1]);
  });
});
