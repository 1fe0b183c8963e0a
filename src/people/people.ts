// People: who signs in to the dashboard, the organizations they belong to, and what they may do there. Face of the feature.
// A signed-in person calls /v1 like a key, limited by the role.
import type { FastifyRequest } from "fastify";
import { type OrganizationAccount, organizationAccounts } from "../accounts/accounts.ts";
import type { Account } from "../http/http.ts";
import { isUuid } from "../platform/database/db.ts";
import { Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import { isDangerous, requireRole } from "./members/roles.ts";
import * as queries from "./queries.ts";
import { readCookie, requireOwnPage } from "./requests.ts";
import { findSession, provedUntil } from "./sign-in/sessions.ts";
import type { PersonRole, PersonRow, Session } from "./types.ts";

export { startPeopleWork } from "./background.ts";
export { firstSetUpLink, makeResetLink, makeSetUpLink } from "./links/links.ts";
export { showSetUpLink } from "./links/show-set-up-link.ts";
export { describePeople } from "./members/list-people.ts";
export { providerProblem } from "./proof/oidc.ts";
export { SEALED } from "./proof/second-factor.ts";

type PeopleWorld = Pick<World, "db" | "clock" | "random" | "log" | "config">;

const ORGANIZATION_HEADER = "x-postern-organization";
const ENVIRONMENT_HEADER = "x-postern-environment";

/**
 * The account that a request without an API key acts for: that of the person whose session its cookie names, in the
 * organization of its header. Null where there is no session at all.
 */
export function personAccounts(world: PeopleWorld): (request: FastifyRequest) => Promise<Account | null> {
  return async (request) => {
    const token = readCookie(request);
    const session = token === null ? null : await findSession(world, token);
    if (!session) return null;
    requireOwnPage(world, request);
    const [orgId, environment] = [request.headers[ORGANIZATION_HEADER], request.headers[ENVIRONMENT_HEADER]];
    if (environment !== "live" && environment !== "test")
      throw new Refusal("validation_error", `send '${ENVIRONMENT_HEADER}: live' or 'test' with the session`, {
        field: ENVIRONMENT_HEADER,
      });
    return actFor(world, session, String(orgId ?? ""), environment);
  };
}

async function actFor(world: PeopleWorld, session: Session, orgId: string, environment: "live" | "test") {
  const { person } = session;
  const [member] = isUuid(orgId) ? await queries.findMembership(world.db, orgId, person.id) : [];
  const organization = member && (await organizationAccounts(world, [orgId])).get(orgId);
  if (!member || !organization)
    throw new Refusal(
      "role_not_allowed",
      `the header '${ORGANIZATION_HEADER}' names none of this person's organizations`,
    );
  const { id, name: _name, test_keys_full, ...terms } = organization;
  const { role, sees_bodies } = member;
  return {
    ...terms,
    ...{ org_id: id, key_id: "", key_name: person.email, environment },
    acts_on_live: environment === "live" || test_keys_full,
    person: { id: person.id, email: person.email, role, sees_bodies, proved_until: provedUntil(session) },
  };
}

/** `isLiveKey`: whether the request is about a live API key, where it is about an API key. */
export async function judgePerson(
  { clock }: Pick<World, "clock">,
  { person }: Pick<Account, "person">,
  act: { operation: string; method: string },
  isLiveKey: () => Promise<boolean>,
): Promise<void> {
  if (!person) return;
  await requireRole({ ...person, role: person.role as PersonRole }, act, isLiveKey);
  if (clock.now() >= person.proved_until.getTime() && (await isDangerous(act, isLiveKey))) throw proofNeeded();
}

/** 403: the password has to be shown again. */
export function proofNeeded(): Refusal {
  return new Refusal("proof_needed", "show your password again: POST /dashboard/api/proof");
}

export { deleteOnlyMembers, findKnown, type KnownPerson } from "./queries.ts";

export type OwnOrganization = Pick<OrganizationAccount, "id" | "name" | "plan" | "state"> & {
  role: PersonRole;
  sees_bodies: boolean;
};

/** A person's organizations with the role in each, the one they joined first first. */
export async function organizationsOf(
  world: Pick<World, "db">,
  { id }: Pick<PersonRow, "id">,
): Promise<OwnOrganization[]> {
  const memberships = await queries.membershipsOf(world.db, id);
  const known = await organizationAccounts(
    world,
    memberships.map(({ org_id }) => org_id),
  );
  return memberships.flatMap(({ org_id, role, sees_bodies }) => {
    const organization = known.get(org_id);
    if (!organization) return [];
    const { name, plan, state } = organization;
    return [{ id: org_id, name, plan, state, role, sees_bodies }];
  });
}
