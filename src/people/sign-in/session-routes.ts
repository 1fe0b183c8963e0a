// Signing in and out, sessions, and links that are good for once.

import type { FastifyReply, FastifyRequest } from "fastify";
import { Type } from "typebox";
import { organizationAccounts } from "../../accounts/accounts.ts";
import { notePersonInAll } from "../../audit/audit.ts";
import { AnswerOf, type Api, answers, Closed, IdParams, Named } from "../../http/http.ts";
import { isUuid } from "../../platform/database/db.ts";
import { notFound, Refusal } from "../../platform/refusal.ts";
import { readLink, useLink } from "../links/links.ts";
import { mailNewSignIn, mailReset } from "../links/mails.ts";
import { organizationsOf } from "../people.ts";
import { listPasskeys } from "../proof/passkey-queries.ts";
import { hasSecondFactor } from "../proof/second-factor.ts";
import { countClientTry, countMail } from "../proof/tries.ts";
import * as queries from "../queries.ts";
import { clientOf, readCookie, requireTls, setCookie, siteOf } from "../requests.ts";
import {
  Code,
  Email,
  Link,
  ListedSession,
  newPasskeyIn,
  PasskeyAnswer,
  Password,
  SessionShown,
  Token,
} from "../schemas.ts";
import type { LinkKind, PeopleWorld, Session } from "../types.ts";
import { findSession, provedUntil, type Shown, sessionBounds, startSession, tokenDigest } from "./sessions.ts";
import { proveAgain, signIn, wrongPassword } from "./sign-in.ts";

const tags = ["Sign-in"];
const OPEN = { needs: "nobody" } as const;
const Done = Named("Done", Type.Object({ done: Type.Boolean({ description: "Always true" }) }));

/** Mounts them. */
export function mountSessions(api: Api, world: PeopleWorld): void {
  mountSignIn(api, world);
  mountLinks(api, world);
  mountReset(api, world);
  mountList(api, world);
}

function mountSignIn(api: Api, world: PeopleWorld): void {
  api.post(
    "/dashboard/api/sign-in",
    {
      config: OPEN,
      schema: {
        operationId: "signIn",
        tags,
        summary: "Sign in with an address and a password",
        description:
          "401 `second_factor_needed`: the password is right, and a code is needed as well: send all three. 401 `sign_in_failed`: " +
          "something of it is wrong. 429: too many tries; nothing is locked for good.",
        body: Closed({ email: Email, password: Password, code: Type.Optional(Code) }),
        response: answers({ 200: SessionShown }),
      },
    },
    async (request, reply) => {
      requireTls(world, request);
      return beginAndTell(world, request, reply, await signIn(world, request.body, request.ip));
    },
  );

  api.get(
    "/dashboard/api/session",
    {
      schema: {
        operationId: "getSession",
        tags,
        summary: "Get who is signed in",
        description: "401 `not_signed_in` where nobody is.",
        response: answers({ 200: SessionShown }),
      },
    },
    async ({ session }) => shown(world, session),
  );

  api.post(
    "/dashboard/api/sign-out",
    { schema: { operationId: "signOut", tags, summary: "Sign out here", response: answers({ 200: Done }) } },
    async (request, reply) => {
      await queries.endSession(world.db, request.session.digest);
      setCookie(request, reply, null);
      return { done: true };
    },
  );

  api.post(
    "/dashboard/api/proof",
    {
      schema: {
        operationId: "proveAgain",
        tags,
        summary: "Show the password again",
        description: "For ten minutes what is dangerous is then allowed, which answers 403 `proof_needed` else.",
        body: Closed({ password: Password, code: Type.Optional(Code) }),
        response: answers({ 200: SessionShown }),
      },
    },
    async ({ session, body, ip }) => {
      await proveAgain(world, session, body, ip);
      return shown(world, { ...session, proved_at: new Date(world.clock.now()) });
    },
  );
}

const LinkUsed = Closed({
  token: Token,
  email: Type.Optional(Email),
  name: Type.Optional(Type.String({ maxLength: 191 })),
  password: Type.Optional(Password),
  passkey: Type.Optional(PasskeyAnswer),
  organization_name: Type.Optional(Type.String({ maxLength: 191 })),
  purpose: Type.Optional(Type.String({ maxLength: 1_000, description: "What will be sent, and to whom" })),
});

/** What the audit log calls the use of a link. */
const ACTS: Record<LinkKind, string> = {
  set_up: "joinOrganization",
  invitation: "joinOrganization",
  sign_up: "signUp",
  reset: "resetPassword",
};

function mountLinks(api: Api, world: PeopleWorld): void {
  api.post(
    "/dashboard/api/links/look-up",
    {
      config: OPEN,
      schema: {
        operationId: "lookUpLink",
        tags,
        summary: "Get what a link is for, without using it",
        description: "404 once it was used, or is over.",
        body: Closed({ token: Token }),
        response: answers({ 200: AnswerOf("link", Link) }, [404]),
      },
    },
    async ({ body }) => {
      const { org_id, ...link } = await readLink(world, body.token);
      const organization = org_id === null ? undefined : (await organizationAccounts(world, [org_id])).get(org_id);
      return { link: { ...link, organization_id: org_id, organization_name: organization?.name ?? null } };
    },
  );

  api.post(
    "/dashboard/api/links/use",
    {
      config: OPEN,
      schema: {
        operationId: "useLink",
        tags,
        summary: "Use a link once, and be signed in",
        description:
          "set_up: `email`, `name`, `password`. invitation: `name`, `password`. reset: `password`. sign_up: `name`, `password`, `organization_name`, `purpose`. A `passkey` (offerFirstPasskey) stands for the " +
          "password of somebody new. A person with an account signs in " +
          "first, and sends the token alone: 409 `invalid_state` says so.",
        body: LinkUsed,
        response: answers({ 200: SessionShown }, [404, 409]),
      },
    },
    async (request, reply) => {
      requireTls(world, request);
      const cookie = readCookie(request);
      const session = cookie === null ? null : await findSession(world, cookie);
      const { passkey, organization_name = "", purpose = "", ...body } = request.body;
      const use = {
        ...body,
        organization: { name: organization_name, purpose },
        passkey: passkey && { site: siteOf(request), answer: newPasskeyIn(passkey) },
      };
      const used = await useLink(world, use, session?.person ?? null);
      const [person] = await queries.findPerson(world.db, used.person_id);
      const operation = ACTS[used.kind];
      if (person)
        await notePersonInAll(world, used.noted_in, { person, request, operation, target: { id: person.id } });
      // Who lost the password may have lost the phone as well: a reset does not go round the second factor.
      if (used.kind === "reset" && person && hasSecondFactor(person)) {
        throw new Refusal("not_signed_in", "the password is set: sign in with it and a code");
      }
      return begin(world, request, reply, { id: used.person_id, password: null });
    },
  );
}

function mountReset(api: Api, world: PeopleWorld): void {
  api.post(
    "/dashboard/api/links/reset",
    {
      config: OPEN,
      schema: {
        operationId: "askForReset",
        tags,
        summary: "Ask for a link that sets a new password",
        description:
          "It is mailed to the person with the address. The answer is the same without one. 409 where the service's own domain is not " +
          "ready: then `postern people reset` makes a link.",
        body: Closed({ email: Email }),
        response: answers({ 202: Done }, [409]),
      },
    },
    async (request, reply) => {
      const { email } = request.body;
      await countClientTry(world, request.ip);
      await countMail(world, `reset ${email.trim().toLowerCase()}`);
      if (!(await world.mailer.isReady()))
        throw new Refusal("invalid_state", "this service mails no links yet; ask who runs it");
      // Not waited for: how long it takes would tell whether somebody has the address.
      mailReset(world, email).catch((err) => world.log.warn({ err }, "a reset could not be mailed"));
      return reply.code(202).send({ done: true });
    },
  );
}

function mountList(api: Api, world: PeopleWorld): void {
  api.get(
    "/dashboard/api/sessions",
    {
      schema: {
        operationId: "listSessions",
        tags,
        summary: "List the person's sessions, the one used last first",
        response: answers({
          200: Named("ListedSessionList", Type.Object({ sessions: Type.Array(ListedSession) })),
        }),
      },
    },
    async ({ session }) => {
      const rows = await queries.listSessions(world.db, session.person.id, sessionBounds(world));
      return { sessions: rows.map((row) => ({ ...row, is_current: row.id === session.id })) };
    },
  );

  api.delete(
    "/dashboard/api/sessions/:id",
    {
      schema: {
        operationId: "endSession",
        tags,
        summary: "Sign out elsewhere",
        params: IdParams,
        response: answers({ 200: Done }, [404]),
      },
    },
    async ({ session, params: { id } }) => {
      const ended = isUuid(id) ? await queries.endSessionById(world.db, session.person.id, id) : 0;
      if (ended === 0) throw notFound("session");
      return { done: true };
    },
  );

  api.post(
    "/dashboard/api/sign-out-everywhere",
    {
      schema: {
        operationId: "signOutEverywhere",
        tags,
        summary: "Sign out everywhere, here included",
        response: answers({ 200: Done }),
      },
    },
    async (request, reply) => {
      await queries.endSessions(world.db, request.session.person.id);
      setCookie(request, reply, null);
      return { done: true };
    },
  );
}

/** The same for somebody who signs in, and is mailed where it is from a place that is new. */
export async function beginAndTell(world: PeopleWorld, request: FastifyRequest, reply: FastifyReply, who: Shown) {
  const client = clientOf(request);
  const known = await queries.listSessions(world.db, who.id, sessionBounds(world));
  const begun = await begin(world, request, reply, who);
  const isKnown = known.some(
    ({ ip, user_agent }) => ip === client.ip && user_agent === client.user_agent.slice(0, 300),
  );
  const [person] = isKnown ? [] : await queries.findPerson(world.db, who.id);
  if (person) mailNewSignIn(world, person, client).catch((err) => world.log.warn({ err }, "no mail about a sign-in"));
  return begun;
}

/** A new session in place of the one that the browser may have had. */
async function begin(world: PeopleWorld, request: FastifyRequest, reply: FastifyReply, who: Shown) {
  const old = readCookie(request);
  if (old !== null) await queries.endSession(world.db, tokenDigest(old));
  const token = await startSession(world, who, clientOf(request));
  if (token === null) throw wrongPassword();
  setCookie(request, reply, token);
  const session = await findSession(world, token);
  if (!session) throw new Error("a session that was begun is not there");
  return shown(world, session);
}

/** A session as the dashboard shows it. */
export async function shown(world: Pick<PeopleWorld, "db">, session: Session) {
  const { person, id, created_at } = session;
  const [codes] = await queries.countRecoveryCodes(world.db, person.id);
  const passkeys = await listPasskeys(world.db, person.id);
  return {
    person: {
      ...{ id: person.id, email: person.email, name: person.name, is_operator: person.is_operator },
      ...{ has_totp: hasSecondFactor(person), recovery_codes_left: codes?.total ?? 0 },
      ...{ has_password: person.password !== null, has_passkey: passkeys.length > 0 },
      has_provider: person.oidc_subject !== null,
    },
    organizations: await organizationsOf(world, person),
    session: { id, created_at, proved_until: provedUntil(session) },
  };
}
