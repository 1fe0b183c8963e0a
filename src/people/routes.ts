// /dashboard/api: everything about people. Every route needs a session unless its `config` says otherwise.
import type { FastifyRequest } from "fastify";
import type { Api } from "../http/http.ts";
import { clientKey } from "../mail/smtp-server/client-limits.ts";
import { createBuckets } from "../platform/fair/buckets.ts";
import { Refusal } from "../platform/refusal.ts";
import { mountOrganizationPeople } from "./members/organization-routes.ts";
import { mountOperator } from "./operator/operator-routes.ts";
import { proofNeeded } from "./people.ts";
import { mountOidc } from "./proof/oidc-routes.ts";
import { mountPasskeys } from "./proof/passkey-routes.ts";
import { readCookie, requireOwnPage } from "./requests.ts";
import { mountPerson } from "./sign-in/person-routes.ts";
import { mountSessions } from "./sign-in/session-routes.ts";
import { findSession, provedUntil } from "./sign-in/sessions.ts";
import { mountSignUp } from "./sign-up/sign-up-routes.ts";
import type { PeopleWorld, Session } from "./types.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Who is signed in; set on every request of /dashboard/api but those that need nobody. */
    session: Session;
  }
  interface FastifyContextConfig {
    /** Only for /dashboard/api: asked without a session, or by operators only. */
    needs?: "nobody" | "operator";
    /** The password must have been shown within ten minutes. */
    dangerous?: boolean;
    /** A form of the dashboard sends it: forms add no headers of their own. */
    by_form?: boolean;
  }
}

/** Requests of one client: an office may stand behind one address. */
const RATE = { per_s: 50, burst: 300, names_max: 10_000 };

/** Mounts them on a scope of their own, and what every request passes on its way. */
export function mountPeople(api: Api, world: PeopleWorld): void {
  api.decorateRequest("session");
  api.addHook("onRequest", limitClients(world));
  api.addHook("onRequest", async (request, reply) => {
    reply.header("cache-control", "no-store");
    requireOwnPage(world, request);
    await requireSession(world, request);
  });
  mountSessions(api, world);
  mountSignUp(api, world);
  mountPasskeys(api, world);
  mountOidc(api, world);
  mountPerson(api, world);
  mountOrganizationPeople(api, world);
  mountOperator(api, world);
}

async function requireSession(world: PeopleWorld, request: FastifyRequest): Promise<void> {
  const { needs, dangerous } = request.routeOptions.config;
  if (needs === "nobody") return;
  const token = readCookie(request);
  const session = token === null ? null : await findSession(world, token);
  if (!session) throw new Refusal("not_signed_in", "sign in first: POST /dashboard/api/sign-in");
  request.session = session;
  if (needs === "operator" && !session.person.is_operator)
    throw new Refusal("role_not_allowed", "this is for operators of the installation");
  if (dangerous && world.clock.now() >= provedUntil(session).getTime()) throw proofNeeded();
}

function limitClients({ clock }: Pick<PeopleWorld, "clock">) {
  const buckets = createBuckets(RATE);
  return async ({ ip }: FastifyRequest): Promise<void> => {
    const waitS = buckets.take(clientKey(ip), clock.monotonic());
    if (waitS === 0) return;
    const retry_after_seconds = Math.max(1, Math.ceil(waitS));
    throw new Refusal("rate_limit_exceeded", "too many requests from this address; try again shortly", {
      retry_after_seconds,
      body: {
        limit_type: "requests_per_second",
        limit: RATE.per_s,
        used: RATE.per_s,
        retry_after_seconds,
        warming_phase: "",
      },
    });
  };
}
