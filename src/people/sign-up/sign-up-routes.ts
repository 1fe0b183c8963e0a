// Signing up: an address is confirmed by mail before anything is made. The answer and its time are the same for an address that has an
// account. Where only whom operators invite may come, an operator makes the link.
import { Type } from "typebox";
import { organizationNamed } from "../../accounts/accounts.ts";
import { notePerson } from "../../audit/audit.ts";
import { type Api, answers, Closed, Named, Nullable } from "../../http/http.ts";
import { Refusal } from "../../platform/refusal.ts";
import { checkAddress, makeSignUpLink, noteShown } from "../links/links.ts";
import { mailSignUp, mailSignUpLink } from "../links/mails.ts";
import { countClientTry, countMail, countSignUp } from "../proof/tries.ts";
import { Email } from "../schemas.ts";
import type { PeopleWorld } from "../types.ts";

const Asked = Named("SignUpAsked", Type.Object({ done: Type.Boolean({ description: "Always true" }) }));

/** Mounts them. */
export function mountSignUp(api: Api, world: PeopleWorld): void {
  api.post(
    "/dashboard/api/sign-up",
    {
      config: { needs: "nobody" },
      schema: {
        operationId: "signUp",
        tags: ["Sign-in"],
        summary: "Ask for a link that makes an account and an organization",
        description:
          "Where POSTERN_SIGNUP is `open`. The link is mailed; nothing is made before it is used (useLink). Somebody who has an account gets a mail that says so. " +
          "409 `invalid_state` where signing up is off, or the service's own domain is not ready.",
        body: Closed({ email: Email }),
        response: answers({ 202: Asked }, [409]),
      },
    },
    async (request, reply) => {
      if (world.config.sign_up !== "open")
        throw new Refusal("invalid_state", "nobody signs up here without an invitation; ask who runs this server");
      const email = checkAddress("email", request.body.email);
      await countClientTry(world, request.ip);
      await countSignUp(world, email, request.ip);
      if (!(await world.mailer.isReady()))
        throw new Refusal("invalid_state", "this service mails no links yet; ask who runs it");
      // Not waited for: how long it takes would say whether somebody has the address.
      mailSignUp(world, email).catch((err) => world.log.warn({ err }, "a link to sign up could not be mailed"));
      return reply.code(202).send({ done: true });
    },
  );

  api.post(
    "/dashboard/api/operator/sign-up-links",
    {
      config: { needs: "operator", dangerous: true },
      schema: {
        operationId: "createSignUpLink",
        tags: ["Operator"],
        summary: "Invite somebody to make an organization of their own",
        description:
          "Where POSTERN_SIGNUP is `invite` or `open`. The link works once, for seven days. It is mailed where the service's own domain is " +
          "ready, and else shown once, to be handed on.",
        body: Closed({ email: Email }),
        response: answers(
          {
            201: Named(
              "NewSignUpLink",
              Type.Object({ email: Email, link: Nullable(Type.String({ description: "null: it was mailed" })) }),
            ),
          },
          [409],
        ),
      },
    },
    async (request, reply) => {
      if (world.config.sign_up === "off")
        throw new Refusal("invalid_state", "signing up is off: set POSTERN_SIGNUP to invite or open");
      const email = checkAddress("email", request.body.email);
      const { person } = request.session;
      await countMail(world, `sign-up links ${person.id}`);
      const org_id = await organizationNamed(world, null);
      const link = await makeSignUpLink(world, email);
      await notePerson(world, org_id, { person, request, operation: "createSignUpLink", fields: ["email"] });
      const isMailed = await mailSignUpLink(world, { org_id, email, link });
      if (!isMailed) await noteShown(world, link);
      return reply.code(201).send({ email, link: isMailed ? null : link });
    },
  );
}
