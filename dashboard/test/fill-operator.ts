// What operators' pages show beside the mail of the stage: a destination that somebody suspended.
import assert from "node:assert/strict";
import type { Scene } from "../../test/support/scene.ts";
import { emailWithStatus, receiveAt } from "../../test/support/stories.ts";
import { askAs, type Person } from "./persons.ts";

/** Its server defers, as that of all names below kontor.example. */
const SUSPENDED = "moving.kontor.example";
const SETTLED_MS = 30_000;
const NOTE = "They move their servers until Friday and asked us to wait";

/** With mail that waits for it. */
export async function fillOperator(scene: Scene, owner: Person): Promise<void> {
  for (const name of ["sales", "office"]) await deferredTo(scene, `${name}@${SUSPENDED}`, "Your order is packed");
  const made = await askAs(scene, owner.token, ["POST", `operator/queue/${SUSPENDED}/suspend`], { note: NOTE });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  assert.equal((await askAs(scene, owner.token, ["POST", "operator/health/look"])).status, 200);
}

/** A mail that was tried once and waits. */
export async function deferredTo(scene: Scene, to: string, subject: string): Promise<string> {
  receiveAt(scene.dns, to.split("@")[1] ?? "", "mx.recipient.example");
  const id = await sendTo(scene, to, subject);
  await emailWithStatus(scene, id, ["deferred"], SETTLED_MS);
  return id;
}

async function sendTo(scene: Scene, to: string, subject: string): Promise<string> {
  const mail = { from: "Nordkiosk <billing@nordkiosk.example>", to: [to], subject, text_body: "Hello" };
  const { status, body } = await scene.ask("POST", "/v1/send", mail);
  assert.equal(status, 202, JSON.stringify(body));
  return String(body.id);
}
