// What people change of themselves: name, password, second factor.
import { Type } from "typebox";
import { type Api, answers, Closed, Named } from "../../http/http.ts";
import type { World } from "../../platform/world.ts";
import { checkName } from "../links/links.ts";
import { hashPassword, judgePassword } from "../proof/passwords.ts";
import { confirmTotp, offerTotp, removeTotp } from "../proof/second-factor.ts";
import * as queries from "../queries.ts";
import { Password, SessionShown } from "../schemas.ts";
import type { Session } from "../types.ts";
import { shown } from "./session-routes.ts";

const tags = ["Person"];
const PROVED = { dangerous: true } as const;

/** Mounts them. */
export function mountPerson(api: Api, world: World): void {
  api.put(
    "/dashboard/api/person",
    {
      schema: {
        operationId: "updatePerson",
        tags,
        summary: "Change one's own name",
        body: Closed({ name: Type.String({ maxLength: 191 }) }),
        response: answers({ 200: SessionShown }),
      },
    },
    async ({ session, body }) => {
      await queries.setName(world.db, session.person.id, checkName(body.name));
      return freshly(world, session);
    },
  );

  api.put(
    "/dashboard/api/person/password",
    {
      config: PROVED,
      schema: {
        operationId: "changePassword",
        tags,
        summary: "Set a new password",
        description:
          "All other sessions of the person end, and links for a new password. 403 `proof_needed`: show the old one first.",
        body: Closed({ password: Password }),
        response: answers({ 200: SessionShown }),
      },
    },
    async ({ session, body }) => {
      const { id, email } = session.person;
      judgePassword("password", body.password, email);
      const password = await hashPassword(world, body.password);
      await world.db.transaction(async (tx) => {
        await queries.setPassword(tx, id, password);
        await queries.endSessions(tx, id, session.digest);
        await queries.dropUnusedLinks(tx, "reset", id);
      });
      return freshly(world, session);
    },
  );

  mountFactors(api, world);
}

function mountFactors(api: Api, world: World): void {
  api.post(
    "/dashboard/api/person/totp",
    {
      config: PROVED,
      schema: {
        operationId: "offerTotp",
        tags,
        summary: "Get a secret for an authenticator app",
        description: "It counts once a code of it was shown. `uri` is what the QR code holds.",
        response: answers(
          { 200: Named("TotpOffer", Type.Object({ secret: Type.String(), uri: Type.String() })) },
          [409],
        ),
      },
    },
    async ({ session }) => offerTotp(world, session.person),
  );

  api.post(
    "/dashboard/api/person/totp/confirm",
    {
      config: PROVED,
      schema: {
        operationId: "confirmTotp",
        tags,
        summary: "Turn the authenticator app on with a code of it",
        description: "The recovery codes are shown once; each is good for once.",
        body: Closed({ code: Type.String({ pattern: "^[0-9]{6}$" }) }),
        response: answers(
          { 200: Named("RecoveryCodes", Type.Object({ recovery_codes: Type.Array(Type.String()) })) },
          [409],
        ),
      },
    },
    async ({ session, body }) => ({ recovery_codes: await confirmTotp(world, session.person, body.code) }),
  );

  api.delete(
    "/dashboard/api/person/totp",
    {
      config: PROVED,
      schema: {
        operationId: "removeTotp",
        tags,
        summary: "Turn the authenticator app off",
        response: answers({ 200: SessionShown }),
      },
    },
    async ({ session }) => {
      await removeTotp(world, session.person.id);
      return freshly(world, session);
    },
  );
}

/** After a change of the person. */
async function freshly(world: World, session: Session) {
  const [person] = await queries.findPerson(world.db, session.person.id);
  return shown(world, { ...session, person: person ?? session.person });
}
