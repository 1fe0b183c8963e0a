// Links that are good for once: the first person sets the installation up, others are invited or make an organization of their own, a
// lost password is replaced. The token
// stands behind the #, which browsers send to nobody; only its SHA-256 is kept.
import type { RegistrationResponseJSON } from "@simplewebauthn/server";
import { openOrganization } from "../../accounts/accounts.ts";
import { readLine } from "../../http/one-line.ts";
import { isDuplicate, type Query, type Tx } from "../../platform/database/db.ts";
import { invalid, Refusal } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import { dropPasskeys } from "../proof/passkey-queries.ts";
import { keepPasskey, type NewPasskey, offerPasskey, readNewPasskey, type Site } from "../proof/passkeys.ts";
import { hashPassword, judgePassword } from "../proof/passwords.ts";
import * as queries from "../queries.ts";
import { newToken, tokenDigest } from "../sign-in/sessions.ts";
import type { LinkKind, PersonRole, PersonRow } from "../types.ts";

const DAY_MS = 86_400_000;
const VALID_MS: Record<LinkKind, number> = {
  set_up: DAY_MS,
  reset: DAY_MS,
  invitation: 7 * DAY_MS,
  sign_up: 7 * DAY_MS,
};
/** The dashboard's page for each. */
const PAGES: Record<LinkKind, string> = {
  set_up: "welcome",
  reset: "reset",
  invitation: "invitation",
  sign_up: "join",
};
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

type LinkWorld = Pick<World, "db" | "clock" | "random" | "config">;

/** What the link is about, before it is used. */
export type ShownLink = { kind: LinkKind; org_id: string | null; email: string | null; role: PersonRole | null };

/** A link that makes whoever uses it owner of the organization, and operator; earlier ones stop. */
export async function makeSetUpLink(world: LinkWorld, orgId: string): Promise<string> {
  await queries.dropUnusedLinks(world.db, "set_up", null);
  return make(world, { kind: "set_up", org_id: orgId, role: "owner" });
}

/** The first start's link; null once there is a person, or where a link was printed and may still be used. */
export async function firstSetUpLink(world: LinkWorld, orgId: string): Promise<string | null> {
  const [people] = await queries.countPeople(world.db);
  return people && people.total > 0 ? null : makeSetUpLink(world, orgId);
}

/**
 * A link with which the person sets a new password; `drops_factors`: and is rid of a lost authenticator app. With the
 * organizations of the person, in whose audit logs it belongs. Null: nobody has the address.
 */
export async function makeResetLink(
  world: LinkWorld,
  email: string,
  drops_factors: boolean,
): Promise<{ link: string; person_id: string; org_ids: string[] } | null> {
  const [person] = await queries.findPersonByEmail(world.db, email.trim().toLowerCase());
  if (!person) return null;
  const link = await makeReset(world, person, { drops_factors, is_mailed: false });
  return { link, person_id: person.id, org_ids: await organizationIds(world, person.id) };
}

async function organizationIds({ db }: { db: Query }, personId: string): Promise<string[]> {
  return (await queries.membershipsOf(db, personId)).map(({ org_id }) => org_id);
}

/** The same to be mailed, and shown to nobody. */
export function makeMailedReset(world: LinkWorld, person: PersonRow): Promise<string> {
  return makeReset(world, person, { drops_factors: false, is_mailed: true });
}

async function makeReset(
  world: LinkWorld,
  { id, email }: PersonRow,
  how: Pick<queries.LinkRow, "drops_factors" | "is_mailed">,
): Promise<string> {
  await queries.dropUnusedLinks(world.db, "reset", id);
  return make(world, { kind: "reset", person_id: id, email, ...how });
}

/** Before a link that could not be mailed is shown: somebody else than the reader of the address's mail will see it. */
export async function noteShown(world: Pick<World, "db">, link: string): Promise<void> {
  await queries.setShown(world.db, tokenDigest(link.slice(link.indexOf("#") + 1)));
}

/** A link, to be mailed, with which the reader of this address's mail makes an organization of their own; earlier ones stop. */
export async function makeSignUpLink(world: LinkWorld, email: string): Promise<string> {
  await queries.dropSignUpLinks(world.db, email);
  return make(world, { kind: "sign_up", email, role: "owner", is_mailed: true });
}

export type Invited = { invitation: queries.Invitation; link: string };

/** An invitation to an organization, whose link is to be mailed. */
export async function invite(
  world: LinkWorld,
  orgId: string,
  { email, role }: { email: string; role: PersonRole },
): Promise<Invited> {
  const address = checkAddress("email", email);
  const members = await world.db.asOrg(orgId, (tx) => queries.listMembers(tx, orgId));
  if (members.some((member) => member.email === address))
    throw new Refusal("already_exists", "the person with this address belongs to the organization already");
  await world.db.asOrg(orgId, (tx) => queries.dropInvitationsOf(tx, orgId, address));
  const made = prepare(world, { kind: "invitation", org_id: orgId, email: address, role, is_mailed: true });
  await world.db.asOrg(orgId, (tx) => queries.insertLink(tx, made.row));
  const { id, created_at, expires_at } = made.row;
  return { invitation: { id, email: address, role, created_at, expires_at }, link: made.link };
}

async function make(world: LinkWorld, what: NewLink): Promise<string> {
  const { row, link } = prepare(world, what);
  await queries.insertLink(world.db, row);
  return link;
}

type NewLink = Partial<queries.LinkRow> & { kind: LinkKind };

function prepare(world: LinkWorld, what: NewLink): { row: queries.LinkRow; link: string } {
  const token = newToken(world);
  const now = world.clock.now();
  const row = {
    ...{ id: world.random.uuid(), digest: tokenDigest(token), org_id: null, person_id: null, email: null, role: null },
    ...{
      drops_factors: false,
      is_mailed: false,
      created_at: new Date(now),
      expires_at: new Date(now + VALID_MS[what.kind]),
    },
    ...what,
  };
  return { row, link: `${world.config.base_url}/${PAGES[what.kind]}#${token}` };
}

/** What a link is about; 404 once it was used, or is over. */
export async function readLink(world: Pick<World, "db" | "clock">, token: string): Promise<ShownLink> {
  const { kind, org_id, email, role } = await findLink(world, token);
  return { kind, org_id, email, role };
}

async function findLink(world: Pick<World, "db" | "clock">, token: string): Promise<queries.LinkRow> {
  const now = new Date(world.clock.now());
  const [row] = TOKEN.test(token) ? await queries.findLink(world.db, tokenDigest(token), now) : [];
  if (!row) throw gone();
  return row;
}

function gone(): Refusal {
  return new Refusal("not_found", "this link was used already, or is over: ask for another one");
}

export type LinkUse = {
  token: string;
  email?: string;
  name?: string;
  password?: string;
  /** The passkey of somebody new, in place of a password. */
  passkey?: { site: Site; answer: RegistrationResponseJSON };
  /** What somebody who signs up calls theirs, and will send. */
  organization?: { name: string; purpose: string };
};
/** `noted_in`: the organizations in whose audit logs it belongs: the one that somebody joined, or those of the person with the new password. */
export type UsedLink = { person_id: string; kind: LinkKind; noted_in: string[] };

/**
 * Does what the link is for, once. `as`: who is signed in; somebody who has a password already takes an invitation that way, so
 * that a link alone opens no account that is there.
 */
export async function useLink(world: LinkWorld, use: LinkUse, as: PersonRow | null): Promise<UsedLink> {
  const link = await findLink(world, use.token);
  const asked = link.kind === "sign_up" ? checkOrganization(world, use) : null;
  const plan = link.kind === "reset" ? await planReset(link, use) : await planJoin(world, link, use, as);
  const password = plan.password === null ? null : await hashPassword(world, plan.password);
  try {
    return await world.db.transaction(async (tx) => {
      if ((await queries.useLink(tx, link.digest, new Date(world.clock.now()))) === 0) throw gone();
      // The first person of an installation started it: nobody was there before.
      const is_proven = link.is_mailed || link.kind === "set_up";
      const person_id = plan.person_id ?? (await makePerson(world, tx, { ...plan, is_proven }));
      if (plan.passkey !== null) await keepPasskey(tx, plan.passkey, "First passkey");
      if (password !== null) await queries.setPassword(tx, person_id, password);
      if (link.kind === "reset") await afterReset(tx, link, person_id);
      const org_id = asked === null ? link.org_id : await openOrganization(world, tx, asked);
      if (link.kind !== "reset") await join(world, tx, { ...link, org_id }, person_id);
      const joined = org_id === null ? [] : [org_id];
      const noted_in = link.kind === "reset" ? await organizationIds({ db: tx }, person_id) : joined;
      return { person_id, kind: link.kind, noted_in };
    });
  } catch (error) {
    if (isDuplicate(error, "person_email")) throw signInFirst();
    throw error;
  }
}

/** `person_id` null: a new person. `password` null: it stays, or there is a passkey in its place. */
type Plan = {
  person_id: string | null;
  email: string;
  name: string;
  password: string | null;
  passkey: NewPasskey | null;
};

async function planReset({ person_id, email }: queries.LinkRow, use: LinkUse): Promise<Plan> {
  const address = email ?? "";
  return { person_id, email: address, name: "", password: neededPassword(use, address), passkey: null };
}

async function planJoin(world: LinkWorld, link: queries.LinkRow, use: LinkUse, as: PersonRow | null): Promise<Plan> {
  const email = link.email ?? as?.email ?? checkAddress("email", use.email ?? "");
  if (as && as.email === email) return { person_id: as.id, email, name: as.name, password: null, passkey: null };
  const [known] = await queries.findPersonByEmail(world.db, email);
  if (known) throw signInFirst();
  const who = { person_id: null, email, name: checkName(use.name ?? "") };
  if (!use.passkey) return { ...who, password: neededPassword(use, email), passkey: null };
  const passkey = await readNewPasskey(world, use.passkey.site, use.passkey.answer, null);
  return { ...who, password: null, passkey };
}

/** What a browser makes the passkey of somebody new with, whom the link lets in. */
export async function offerFirstPasskey(
  world: LinkWorld,
  site: Site,
  { token, email, name }: { token: string; email?: string; name: string },
): ReturnType<typeof offerPasskey> {
  const link = await findLink(world, token);
  if (link.kind === "reset") throw new Refusal("invalid_state", "this link sets a new password");
  const address = link.email ?? checkAddress("email", email ?? "");
  const [known] = await queries.findPersonByEmail(world.db, address);
  if (known) throw signInFirst();
  return offerPasskey(world, site, { id: world.random.uuid(), email: address, name: checkName(name) }, true);
}

/** Somebody new whom a provider vouches for takes the invitation of their address, to this organization or any; null: nobody invited them. */
export async function joinByInvitation(
  world: LinkWorld,
  email: string,
  { subject, name }: { subject: string; name: string },
  orgId: string | null,
): Promise<{ person_id: string; org_id: string } | null> {
  const [link] = await queries.findInvitation(world.db, email, orgId, new Date(world.clock.now()));
  if (!link || link.org_id === null) return null;
  const { org_id } = link;
  const plan = { person_id: null, email, name: checkName(name), password: null, passkey: null };
  return world.db.transaction(async (tx) => {
    if ((await queries.useLink(tx, link.digest, new Date(world.clock.now()))) === 0) throw gone();
    const person_id = await makePerson(world, tx, { ...plan, is_proven: true });
    await queries.setOidcSubject(tx, person_id, subject);
    await join(world, tx, link, person_id);
    return { person_id, org_id };
  });
}

function signInFirst(): Refusal {
  return new Refusal("invalid_state", "this address has an account already: sign in with it, then open the link again");
}

function neededPassword({ password }: LinkUse, email: string): string {
  if (password === undefined) throw invalid("password", "the 'password' field is required");
  judgePassword("password", password, email);
  return password;
}

async function makePerson(world: LinkWorld, tx: Tx, plan: Plan & { is_proven: boolean }): Promise<string> {
  const { email, name, passkey, is_proven } = plan;
  const id = passkey?.person_id ?? world.random.uuid();
  const created_at = new Date(world.clock.now());
  await queries.insertPerson(tx, { id, email, name, is_operator: false, is_proven, created_at });
  return id;
}

/**
 * Who had the old password is out. So is who has a passkey, where nobody had shown before that they read the address's mail:
 * somebody else, who was shown the link of an invitation, may have made it. An authenticator app stays, because it lets in
 * nobody by itself, and mail alone should not take it away.
 */
async function afterReset(tx: Tx, { drops_factors, is_mailed }: queries.LinkRow, personId: string): Promise<void> {
  await queries.endSessions(tx, personId);
  const isFirstProof = is_mailed && (await queries.setProven(tx, personId)) > 0;
  if (isFirstProof || drops_factors) await dropPasskeys(tx, personId);
  if (!drops_factors) return;
  await queries.setTotp(tx, personId, null);
  await queries.dropRecoveryCodes(tx, personId);
}

async function join(world: LinkWorld, tx: Tx, { kind, org_id, role }: queries.LinkRow, person_id: string) {
  if (kind === "set_up") await queries.makeOperator(tx, person_id);
  if (org_id === null || role === null) return;
  await queries.insertMembership(tx, { org_id, person_id, role, at: new Date(world.clock.now()) });
}

const PURPOSE_MIN = 10;

/** Only while the operator lets people sign up: the setting may have changed since the link was mailed. */
function checkOrganization({ config }: LinkWorld, { organization }: LinkUse): { name: string; purpose: string } {
  if (config.sign_up === "off")
    throw new Refusal("invalid_state", "nobody signs up here any more; ask who runs this server");
  const name = readLine("organization_name", organization?.name ?? "");
  if (name === "") throw invalid("organization_name", "the 'organization_name' field is required");
  const purpose = (organization?.purpose ?? "").trim();
  if (purpose.length < PURPOSE_MIN)
    throw invalid("purpose", "the 'purpose' field says what will be sent, and to whom, in a sentence");
  return { name, purpose };
}

const ADDRESS = /^[^\s@"<>()[\],;:\\]+@[^\s@"<>()[\],;:\\]+\.[^\s@"<>()[\],;:\\]+$/;

/** An address as people have one, in lower case. */
export function checkAddress(field: string, text: string): string {
  const address = text.trim().toLowerCase();
  if (address.length <= 254 && ADDRESS.test(address)) return address;
  throw invalid(field, `the '${field}' field is not an e-mail address`);
}

/** What a person is called, on one line; it may be empty. */
export function checkName(text: string): string {
  return readLine("name", text);
}
