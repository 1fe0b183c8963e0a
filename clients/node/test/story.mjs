// One day with the library against a real Postern: send, wait for the event, verify the webhook, walk over a list, meet each
// error. Played by test/clients/stories.long.test.ts; prints one line of JSON.
import * as library from "../dist/postern.js";

const { Postern, PosternError, SIGNATURE_HEADER, verify } = library;
const { STORY_HOOKS, STORY_LIMITED_KEY, STORY_SECRET } = process.env;
const NOBODY = "01890000-0000-7000-8000-000000000000";
const postern = new Postern();
const mail = { from: "orders@shop.example", to: ["node@recipient.example"], subject: "A story", text_body: "Hello" };

let { next: after } = await postern.events.list();
const sent = await postern.emails.send(mail);
let event;
while (!event) {
  const read = await postern.events.list({ after, types: "email.delivered", wait: 10 });
  after = read.next;
  event = read.events.map(({ body }) => JSON.parse(body)).find(({ email_id }) => email_id === sent.id);
}
const hook = await (await fetch(`${STORY_HOOKS}/${sent.id}`)).json();
const body = Buffer.from(hook.body, "base64");
const told = verify(body, hook.headers[SIGNATURE_HEADER], STORY_SECRET);

const ids = [];
for await (const { id } of postern.emails.list({ limit: 2 })) ids.push(id);

async function kindOf(work) {
  try {
    await work();
    return "none";
  } catch (error) {
    return error instanceof PosternError ? error.name : `not ours: ${error}`;
  }
}
async function hurry() {
  const limited = new Postern({ apiKey: STORY_LIMITED_KEY, maxRetries: 0 });
  for (let asked = 0; asked < 50; asked += 1) await limited.me.get();
}
await postern.suppressions.add({ email: "gone@recipient.example", reason: "manual" });
const errors = {
  validation: await kindOf(() => postern.emails.send({ ...mail, to: [] })),
  authentication: await kindOf(() => new Postern("svc_live_wrong").emails.list()),
  permission: await kindOf(() => postern.emails.send({ ...mail, from: "a@unknown.example" })),
  not_found: await kindOf(() => postern.emails.get(NOBODY)),
  conflict: await kindOf(() => postern.domains.create({ domain: "shop.example", type: "outbound" })),
  all_suppressed: await kindOf(() => postern.emails.send({ ...mail, to: ["gone@recipient.example"] })),
  rate_limit: await kindOf(hurry),
  connection: await kindOf(() => new Postern({ baseUrl: "http://127.0.0.1:1", maxRetries: 0 }).emails.list()),
  signature: await kindOf(async () => verify(Buffer.concat([body, body]), hook.headers[SIGNATURE_HEADER], STORY_SECRET)),
};
console.log(
  JSON.stringify({ id: sent.id, event: event.event, webhook: told.email_id, ids: ids.length, unique: new Set(ids).size, errors }),
);
