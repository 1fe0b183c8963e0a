// What operators' pages show beside the mail of the stage: a destination that somebody suspended.
import assert from "node:assert/strict";
import type { Scene } from "../../test/support/scene.ts";
import { receiveAt } from "../../test/support/stories.ts";
import { askAs, type Person } from "./persons.ts";

const SUSPENDED = "moving.example";
const NOTE = "They move their servers until Friday and asked us to wait";

/** With mail that waits for it. */
export async function fillOperator(scene: Scene, owner: Person): Promise<void> {
  receiveAt(scene.dns, SUSPENDED, "mx.recipient.example");
  const made = await askAs(scene, owner.token, ["POST", `operator/queue/${SUSPENDED}/suspend`], { note: NOTE });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  for (const name of ["sales", "office"]) await sendTo(scene, `${name}@${SUSPENDED}`, "Your order is packed");
}

export async function sendTo(scene: Scene, to: string, subject: string): Promise<string> {
  const mail = { from: "Nordkiosk <billing@nordkiosk.example>", to: [to], subject, text_body: "Hello" };
  const { status, body } = await scene.ask("POST", "/v1/send", mail);
  assert.equal(status, 202, JSON.stringify(body));
  return String(body.id);
}
