// Passkeys over HTTP: making, listing and removing them, signing in with one, and showing one in place of the password.
import type { AuthenticationResponseJSON } from "@simplewebauthn/server";
import type { FastifyRequest } from "fastify";
import { type Static, Type } from "typebox";
import { AnswerOf, type Api, answers, Closed, Deleted, Id, IdParams, Named, Nullable, Time } from "../../http/http.ts";
import { isUuid } from "../../platform/database/db.ts";
import { notFound, Refusal } from "../../platform/refusal.ts";
import { checkName, offerFirstPasskey } from "../links/links.ts";
import * as queries from "../queries.ts";
import { requireTls, siteOf } from "../requests.ts";
import { Email, newPasskeyIn, PasskeyAnswer, SessionShown, Token } from "../schemas.ts";
import { beginAndTell, shown } from "../sign-in/session-routes.ts";
import type { PeopleWorld } from "../types.ts";
import * as passkeyQueries from "./passkey-queries.ts";
import { askPasskey, keepPasskey, offerPasskey, personOfPasskey, readNewPasskey, removePasskey } from "./passkeys.ts";
import { countClientTry } from "./tries.ts";

const tags = ["Passkeys"];
const OPEN = { needs: "nobody" } as const;
const PROVED = { dangerous: true } as const;

const Options = Named(
  "PasskeyOptions",
  Type.Object(
    {
      options: Type.Object(
        {},
        { additionalProperties: true, description: "For navigator.credentials, in its JSON form" },
      ),
    },
    { description: "Good for one answer, within five minutes" },
  ),
);
const Passkey = Named(
  "Passkey",
  Type.Object({ id: Id, name: Type.String(), created_at: Time, used_at: Nullable(Time) }),
);

/** Mounts them. */
export function mountPasskeys(api: Api, world: PeopleWorld): void {
  mountKept(api, world);
  mountNew(api, world);
  mountSigningIn(api, world);
  mountProof(api, world);
}

const PATH = "/dashboard/api/person/passkeys";

function mountKept(api: Api, world: PeopleWorld): void {
  api.get(
    PATH,
    {
      schema: {
        operationId: "listPasskeys",
        tags,
        summary: "List one's passkeys, the oldest first",
        response: answers({ 200: Named("PasskeyList", Type.Object({ passkeys: Type.Array(Passkey) })) }),
      },
    },
    async ({ session }) => {
      const rows = await passkeyQueries.listPasskeys(world.db, session.person.id);
      return { passkeys: rows.map(({ credential_id: _id, ...row }) => row) };
    },
  );

  api.delete(
    `${PATH}/:id`,
    {
      config: PROVED,
      schema: {
        operationId: "removePasskey",
        tags,
        summary: "Remove a passkey",
        description: "409 when it is the only way to sign in.",
        params: IdParams,
        response: answers({ 200: Deleted }, [404, 409]),
      },
    },
    async ({ session, params: { id } }) => {
      if (!isUuid(id)) throw notFound("passkey");
      await removePasskey(world, session.person, id);
      return { deleted: true, id };
    },
  );
}

function mountNew(api: Api, world: PeopleWorld): void {
  api.post(
    `${PATH}/options`,
    {
      config: PROVED,
      schema: {
        operationId: "offerPasskey",
        tags,
        summary: "Get what a browser makes a new passkey with",
        response: answers({ 200: Options }, [409]),
      },
    },
    async (request) => ({ options: await offerPasskey(world, siteOf(request), request.session.person) }),
  );

  api.post(
    PATH,
    {
      config: PROVED,
      schema: {
        operationId: "addPasskey",
        tags,
        summary: "Keep a passkey that the browser made",
        body: Closed({ passkey: PasskeyAnswer, name: Type.String({ minLength: 1, maxLength: 60 }) }),
        response: answers({ 201: AnswerOf("passkey", Passkey) }, [409]),
      },
    },
    async (request, reply) => {
      const { session, body } = request;
      const made = await readNewPasskey(world, siteOf(request), newPasskeyIn(body.passkey), session.person.id);
      const name = checkName(body.name);
      await keepPasskey(world.db, made, name);
      const { id, created_at } = made;
      return reply.code(201).send({ passkey: { id, name, created_at, used_at: null } });
    },
  );
}

function mountSigningIn(api: Api, world: PeopleWorld): void {
  api.post(
    "/dashboard/api/passkeys/options",
    {
      config: OPEN,
      schema: {
        operationId: "askPasskey",
        tags,
        summary: "Get what a browser asks its passkeys with",
        response: answers({ 200: Options }),
      },
    },
    async (request) => {
      await countClientTry(world, request.ip);
      return { options: await askPasskey(world, siteOf(request)) };
    },
  );

  api.post(
    "/dashboard/api/passkeys/sign-in",
    {
      config: OPEN,
      schema: {
        operationId: "signInWithPasskey",
        tags,
        summary: "Sign in with a passkey",
        description:
          "It stands for password and code. 401 `sign_in_failed`: it is not known here, or answers another question.",
        body: Closed({ passkey: PasskeyAnswer }),
        response: answers({ 200: SessionShown }),
      },
    },
    async (request, reply) => {
      requireTls(world, request);
      const id = await personBehind(world, request, request.body.passkey);
      return beginAndTell(world, request, reply, { id, password: null });
    },
  );
}

function mountProof(api: Api, world: PeopleWorld): void {
  api.post(
    "/dashboard/api/proof/passkey",
    {
      schema: {
        operationId: "proveWithPasskey",
        tags,
        summary: "Show a passkey in place of the password",
        description: "For ten minutes what is dangerous is then allowed, which answers 403 `proof_needed` else.",
        body: Closed({ passkey: PasskeyAnswer }),
        response: answers({ 200: SessionShown }),
      },
    },
    async (request) => {
      const { session } = request;
      if ((await personBehind(world, request, request.body.passkey)) !== session.person.id) throw notKnown();
      const now = new Date(world.clock.now());
      await queries.proveSession(world.db, session.digest, now);
      return shown(world, { ...session, proved_at: now });
    },
  );

  api.post(
    "/dashboard/api/links/passkey-options",
    {
      config: OPEN,
      schema: {
        operationId: "offerFirstPasskey",
        tags,
        summary: "Get what a browser makes the passkey of a new person with",
        description: "For a set-up link or an invitation, in place of a password: then use the link with `passkey`.",
        body: Closed({ token: Token, email: Type.Optional(Email), name: Type.String({ maxLength: 191 }) }),
        response: answers({ 200: Options }, [404, 409]),
      },
    },
    async (request) => ({ options: await offerFirstPasskey(world, siteOf(request), request.body) }),
  );
}

async function personBehind(
  world: PeopleWorld,
  request: FastifyRequest,
  passkey: Static<typeof PasskeyAnswer>,
): Promise<string> {
  await countClientTry(world, request.ip);
  const answer = passkey as unknown as AuthenticationResponseJSON;
  const personId = await personOfPasskey(world, siteOf(request), answer);
  if (personId === null) throw notKnown();
  return personId;
}

function notKnown(): Refusal {
  return new Refusal("sign_in_failed", "this passkey is not known here");
}
