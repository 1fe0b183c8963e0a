// People of a stage, made by the same requests as the dashboard's pages make.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import type { Scene } from "../../test/support/scene.ts";

export const PASSWORD = "correct horse battery";
/** `token`: of the session that they are signed in with. */
export type Person = { email: string; token: string };

type Place = Pick<Scene, "base_url">;
type Answer = { status: number; body: Record<string, unknown>; token: string | null };

/** A request of the dashboard's pages, for the person of this session. */
export async function askAs(
  { base_url }: Place,
  token: string | null,
  [method, path]: readonly [string, string],
  body?: unknown,
): Promise<Answer> {
  const cookie: Record<string, string> = token === null ? {} : { cookie: `postern=${token}` };
  const type: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
  const response = await fetch(`${base_url}/dashboard/api/${path}`, {
    method,
    headers: { origin: base_url, "x-postern-dashboard": "1", ...cookie, ...type },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const set = /^postern=([\w-]{43});/.exec(response.headers.get("set-cookie") ?? "");
  return { status: response.status, body: (await response.json()) as Answer["body"], token: set?.[1] ?? null };
}

/** The link that the first start left in its data folder. */
export function firstLink({ dir }: Pick<Scene, "dir">): string {
  return readFileSync(join(dir, "data", "set-up-link"), "utf8").trim();
}

/** The first person, by the link of the first start. */
export function setUpFirst(scene: Scene, who: { email: string; name: string }): Promise<Person> {
  return takeLink(scene, firstLink(scene), who);
}

/** Invites somebody to the owner's first organization, and takes the invitation. */
export async function addMember(
  scene: Scene,
  owner: Person,
  { role, ...who }: { email: string; name: string; role: string },
): Promise<Person> {
  return takeLink(scene, await invite(scene, owner, { email: who.email, role }), who);
}

/**
 * The password once more: what is dangerous is allowed for ten minutes from then on, and pages are looked at for longer. Many stories
 * in a short time are too many tries of one client: then it waits as long as it is asked to.
 */
export async function proveAgain(scene: Place, person: Person): Promise<void> {
  const { status, body } = await askAs(scene, person.token, ["POST", "proof"], { password: PASSWORD });
  if (status === 429) {
    await setTimeout(Number(body.retry_after_seconds) * 1_000);
    return proveAgain(scene, person);
  }
  assert.equal(status, 200, JSON.stringify(body));
}

export async function invite(scene: Place, owner: Person, what: { email: string; role: string }): Promise<string> {
  const { body } = await askAs(scene, owner.token, ["GET", "session"]);
  const [organization] = body.organizations as { id: string }[];
  const made = await askAs(scene, owner.token, ["POST", `organizations/${organization?.id}/invitations`], what);
  assert.equal(made.status, 201, JSON.stringify(made.body));
  return String(made.body.link);
}

/** The link with which somebody makes an organization of their own. */
export async function inviteToSignUp(scene: Place, operator: Person, email: string): Promise<string> {
  const made = await askAs(scene, operator.token, ["POST", "operator/sign-up-links"], { email });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  return String(made.body.link);
}

/** Somebody new with an organization of their own, which is in review. */
export async function signUp(scene: Place, operator: Person, who: { email: string; name: string }): Promise<Person> {
  const link = await inviteToSignUp(scene, operator, who.email);
  const organization_name = "Atelier Brun";
  const purpose = "Order confirmations and invoices, to people who bought a picture in our shop.";
  const body = { token: link.split("#")[1], name: who.name, password: PASSWORD, organization_name, purpose };
  const used = await askAs(scene, null, ["POST", "links/use"], body);
  assert.equal(used.status, 200, JSON.stringify(used.body));
  return { email: who.email, token: used.token ?? "" };
}

async function takeLink(scene: Place, link: string, who: { email: string; name: string }): Promise<Person> {
  const token = link.split("#")[1];
  const isNamed = link.includes("/welcome#");
  const whom = isNamed ? who : { name: who.name };
  const used = await askAs(scene, null, ["POST", "links/use"], { token, ...whom, password: PASSWORD });
  assert.equal(used.status, 200, JSON.stringify(used.body));
  return { email: who.email, token: used.token ?? "" };
}
