// What operators' pages show beside the mail of the stage: a destination that somebody suspended, a pool of addresses, a relay that
// cannot be reached.
import assert from "node:assert/strict";
import type { Scene } from "../../test/support/scene.ts";
import { emailWithStatus, receiveAt } from "../../test/support/stories.ts";
import { askAs, type Person } from "./persons.ts";

/** Its server defers, as that of all names below kontor.example. */
const SUSPENDED = "moving.kontor.example";
const SETTLED_MS = 30_000;
const NOTE = "They move their servers until Friday and asked us to wait";

/** Of a pool: one that is called as it says, one that is warmed up and has another name, and one that no machine has. */
export const ADDRESSES = { named: "127.0.0.31", warming: "127.0.0.32", elsewhere: "10.20.0.61" };
/** A domain of fill-masked.ts, whose relay leads nowhere. */
export const RELAY = { domain: "brandt.example", host: "smtp.provider.example" };

/** With mail that waits for it. */
export async function fillOperator(scene: Scene, owner: Person): Promise<void> {
  await fillSources(scene);
  for (const name of ["sales", "office"]) await deferredTo(scene, `${name}@${SUSPENDED}`, "Your order is packed");
  const made = await askAs(scene, owner.token, ["POST", `operator/queue/${SUSPENDED}/suspend`], { note: NOTE });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  assert.equal((await askAs(scene, owner.token, ["POST", "operator/health/look"])).status, 200);
}

async function fillSources(scene: Scene): Promise<void> {
  const { named, warming, elsewhere } = ADDRESSES;
  scene.dns.set(named, "PTR", ["out1.nordkiosk.example"]);
  scene.dns.set("out1.nordkiosk.example", "A", [named]);
  scene.dns.set(warming, "PTR", ["host-32.provider.example"]);
  const ips = [
    { ip: named, ehlo: "out1.nordkiosk.example", warmup: false, weight: 3 },
    { ip: warming },
    { ip: elsewhere },
  ];
  const pool = await scene.ask("POST", "/v1/ip-pools", { name: "letters", ips });
  assert.equal(pool.status, 201, JSON.stringify(pool.body));
  const relay = { host: RELAY.host, username: "nordkiosk", password: "not this one" };
  const set = await scene.ask("PUT", `/v1/domains/${RELAY.domain}/relay`, relay);
  assert.equal(set.status, 200, JSON.stringify(set.body));
  const id = await sendTo(scene, "maja.lind@posteo.example", "Our new address", `hello@${RELAY.domain}`);
  await emailWithStatus(scene, id, ["deferred"], SETTLED_MS);
}

/** A mail that was tried once and waits. */
export async function deferredTo(scene: Scene, to: string, subject: string): Promise<string> {
  receiveAt(scene.dns, to.split("@")[1] ?? "", "mx.recipient.example");
  const id = await sendTo(scene, to, subject);
  await emailWithStatus(scene, id, ["deferred"], SETTLED_MS);
  return id;
}

const NORDKIOSK = "Nordkiosk <billing@nordkiosk.example>";

async function sendTo(scene: Scene, to: string, subject: string, from = NORDKIOSK): Promise<string> {
  const mail = { from, to: [to], subject, text_body: "Hello" };
  const { status, body } = await scene.ask("POST", "/v1/send", mail);
  assert.equal(status, 202, JSON.stringify(body));
  return String(body.id);
}
