// The way to an OpenID Connect provider and back, as the browser goes it; and who may come in by it: who is known, who is invited, and who
// has an address of the domains that the settings name.

import type { FastifyReply, FastifyRequest } from "fastify";
import { Type } from "typebox";
import { organizationNamed } from "../../accounts/accounts.ts";
import { notePerson } from "../../audit/audit.ts";
import { type Api, answers, Named, Nullable, OneOf } from "../../http/http.ts";
import { isDuplicate } from "../../platform/database/db.ts";
import { Refusal } from "../../platform/refusal.ts";
import { checkAddress, joinByInvitation } from "../links/links.ts";
import * as queries from "../queries.ts";
import { readCookie, readKept, requireTls, setKept } from "../requests.ts";
import { beginAndTell } from "../sign-in/session-routes.ts";
import { findSession, tokenDigest } from "../sign-in/sessions.ts";
import type { PeopleWorld, PersonRole, PersonRow } from "../types.ts";
import { type Asking, type Claims, createOidc, type Oidc } from "./oidc.ts";
import { dropPasskeys } from "./passkey-queries.ts";
import { countClientTry } from "./tries.ts";

const OPEN = { needs: "nobody" } as const;
const HIDDEN = { hide: true } as const;
const Ways = Named(
  "WaysIn",
  Type.Object({
    mails: Type.Boolean({ description: "Links are mailed: a reset can be asked for" }),
    sign_up: OneOf(["off", "invite", "open"], { description: "Who may make an organization of their own" }),
    oidc: Nullable(Type.Object({ name: Type.String({ description: "What the button says" }) })),
  }),
);

/** Mounts them. */
export function mountOidc(api: Api, world: PeopleWorld): void {
  const settings = world.config.oidc;
  api.get(
    "/dashboard/api/ways-in",
    {
      config: OPEN,
      schema: {
        operationId: "getWaysIn",
        tags: ["Sign-in"],
        summary: "Get how one may sign in here",
        response: answers({ 200: Ways }),
      },
    },
    async () => ({
      mails: await world.mailer.isReady(),
      sign_up: world.config.sign_up,
      oidc: settings && { name: settings.name },
    }),
  );
  if (settings === null) return;
  const oidc = createOidc(world, settings);

  api.get(
    "/dashboard/api/oidc/start",
    {
      config: OPEN,
      schema: {
        ...HIDDEN,
        querystring: Type.Object({
          to: Type.Optional(Type.String({ maxLength: 2_000 })),
          proves: Type.Optional(Type.Literal("1")),
        }),
      },
    },
    async (request, reply) => {
      const { to = "/", proves } = request.query;
      const goThere = async () => {
        await countClientTry(world, request.ip);
        const session = proves === undefined ? null : await sessionOf(world, request);
        const { url, kept } = await oidc.ask({ to: pathOf(to), proves: session?.person.id ?? null });
        setKept(request, reply, kept);
        return url;
      };
      return reply.redirect(await goThere().catch((error) => refused(world, error)), 303);
    },
  );

  api.get("/dashboard/api/oidc/callback", { config: OPEN, schema: HIDDEN }, async (request, reply) => {
    const to = await comeBack(world, oidc, request, reply).catch((error) => refused(world, error));
    return reply.redirect(to, 303);
  });
}

/** A browser goes these ways, so a refusal is a page too: the place of the sign-in page that says so. */
function refused({ log }: PeopleWorld, error: unknown): string {
  if (!(error instanceof Refusal)) throw error;
  const why = error.message;
  if (error.kind === "unavailable") log.error({ why }, "nobody can sign in at the provider");
  else log.info({ why }, "a sign-in at the provider was refused");
  return `/sign-in?problem=${PROBLEMS.get(error.kind) ?? "oidc_failed"}`;
}

/** What the sign-in page makes a sentence of. */
const PROBLEMS = new Map([
  ["role_not_allowed", "oidc_uninvited"],
  ["invalid_state", "oidc_unverified"],
  ["unavailable", "oidc_unavailable"],
]);

/** Signs in, or notes the proof; answers where to go on. */
async function comeBack(world: PeopleWorld, oidc: Oidc, request: FastifyRequest, reply: FastifyReply): Promise<string> {
  requireTls(world, request);
  await countClientTry(world, request.ip);
  const kept = readKept(request);
  setKept(request, reply, null);
  const { claims, asking } = await oidc.read(request.url.split("?")[1] ?? "", kept);
  const personId = await personOf(world, request, claims);
  if (asking.proves === null) await beginAndTell(world, request, reply, { id: personId, password: null });
  else await prove(world, request, asking, personId);
  return asking.to;
}

async function prove(world: PeopleWorld, request: FastifyRequest, { proves }: Asking, personId: string): Promise<void> {
  const session = await sessionOf(world, request);
  if (session?.person.id !== proves || personId !== proves)
    throw new Refusal("sign_in_failed", "somebody else signed in at the provider");
  await queries.proveSession(world.db, session.digest, new Date(world.clock.now()));
}

async function sessionOf(world: PeopleWorld, request: FastifyRequest) {
  const token = readCookie(request);
  return token === null ? null : findSession(world, token);
}

async function personOf(world: PeopleWorld, request: FastifyRequest, claims: Claims): Promise<string> {
  const [known] = await queries.findPersonByOidc(world.db, claims.subject);
  if (known) return known.id;
  if (claims.email === null || !claims.is_verified)
    throw new Refusal("invalid_state", "the provider does not say that the address is verified");
  const email = checkAddress("email", claims.email);
  const [person] = await queries.findPersonByEmail(world.db, email);
  if (person) return bind(world, request, person, claims);
  const joined = await joinNewly(world, email, claims);
  if (joined === null) throw new Refusal("role_not_allowed", `nobody invited ${email}`);
  await notePerson(world, joined.org_id, {
    ...{ person: { id: joined.person_id, email }, request, operation: "joinOrganization" },
    target: { id: joined.person_id },
  });
  return joined.person_id;
}

/**
 * The person of a verified address is the provider's from now on; who is another's already is not. Where nobody had shown before
 * that they read the address's mail, somebody else, who was shown the link of an invitation, may have made the password, the
 * passkeys and the sessions: they end, but the session of this browser.
 */
async function bind(
  world: PeopleWorld,
  request: FastifyRequest,
  { id, email }: PersonRow,
  { subject }: Claims,
): Promise<string> {
  const token = readCookie(request);
  await world.db.transaction(async (tx) => {
    if ((await queries.setOidcSubject(tx, id, subject)) === 0)
      throw new Refusal("sign_in_failed", `the provider knew ${email} as somebody else`);
    if ((await queries.setProven(tx, id)) === 0) return;
    await queries.setPassword(tx, id, null);
    await dropPasskeys(tx, id);
    await queries.endSessions(tx, id, token === null ? null : tokenDigest(token));
  });
  return id;
}

/** A person with an address of the domains belongs to the first organization: another's invitation takes them nowhere else unasked. */
async function joinNewly(world: PeopleWorld, email: string, claims: Claims) {
  const { domains = [], role = "viewer" } = world.config.oidc ?? {};
  if (!domains.includes(email.split("@")[1] ?? "")) return joinByInvitation(world, email, claims, null);
  const org_id = await organizationNamed(world, null);
  return (await joinByInvitation(world, email, claims, org_id)) ?? joinByDomain(world, email, claims, { org_id, role });
}

async function joinByDomain(
  world: PeopleWorld,
  email: string,
  { subject, name }: Claims,
  { org_id, role }: { org_id: string; role: PersonRole },
) {
  const person_id = world.random.uuid();
  const at = new Date(world.clock.now());
  try {
    await world.db.transaction(async (tx) => {
      await queries.insertPerson(tx, {
        id: person_id,
        email,
        name,
        is_operator: false,
        is_proven: true,
        created_at: at,
      });
      await queries.setOidcSubject(tx, person_id, subject);
      await queries.insertMembership(tx, { org_id, person_id, role, at });
    });
  } catch (error) {
    if (isDuplicate(error, "person_email")) throw new Refusal("sign_in_failed", "somebody signs in twice at once");
    throw error;
  }
  return { org_id, person_id };
}

/** A page of this site, whatever was asked for. */
function pathOf(to: string): string {
  return /^\/(?![/\\])[\x21-\x7e]*$/.test(to) ? to : "/";
}
