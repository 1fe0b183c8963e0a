// The people of one organization: members, roles, invitations. Who belongs to it sees them; owners change them. Where somebody
// does not belong there is nothing (404).

import type { FastifyRequest } from "fastify";
import { Type } from "typebox";
import { refuseIfMoving } from "../../accounts/accounts.ts";
import { type Change, changesBetween, notePerson } from "../../audit/audit.ts";
import { AnswerOf, type Api, answers, Closed, Deleted, Named, Nullable } from "../../http/http.ts";
import { isUuid } from "../../platform/database/db.ts";
import { notFound, Refusal } from "../../platform/refusal.ts";
import { invite, noteShown } from "../links/links.ts";
import { mailInvitation } from "../links/mails.ts";
import { countMail } from "../proof/tries.ts";
import * as queries from "../queries.ts";
import { Email, Invitation, Member, Role } from "../schemas.ts";
import type { PeopleWorld } from "../types.ts";
import { changeMember, listMembers, removeMember } from "./members.ts";

const tags = ["People"];
const PROVED = { dangerous: true } as const;
const OrgParams = Type.Object({ org_id: Type.String({ maxLength: 100 }) });
const RecordParams = Type.Object({ org_id: Type.String({ maxLength: 100 }), id: Type.String({ maxLength: 100 }) });

/** Mounts them. */
export function mountOrganizationPeople(api: Api, world: PeopleWorld): void {
  mountMembers(api, world);
  mountInvitations(api, world);
  mountTakingBack(api, world);
}

function mountMembers(api: Api, world: PeopleWorld): void {
  const path = "/dashboard/api/organizations/:org_id/people";
  api.get(
    path,
    {
      schema: {
        operationId: "listMembers",
        tags,
        summary: "List who belongs to the organization",
        params: OrgParams,
        response: answers({ 200: Named("MemberList", Type.Object({ people: Type.Array(Member) })) }, [404]),
      },
    },
    async (request) => ({ people: await listMembers(world, await ownOrganization(world, request)) }),
  );

  api.put(
    `${path}/:id`,
    {
      config: PROVED,
      schema: {
        operationId: "updateMember",
        tags,
        summary: "Give somebody another role",
        description: "Owners only. 409 where nobody would be owner any more.",
        params: RecordParams,
        body: Closed({ role: Type.Optional(Role), sees_bodies: Type.Optional(Type.Boolean()) }),
        response: answers({ 200: AnswerOf("person", Member) }, [404, 409]),
      },
    },
    async (request) => {
      const orgId = await ownOrganization(world, request, "owner");
      const { id } = request.params;
      const { before, after } = await changeMember(world, orgId, { id, ...request.body });
      const changes = changesBetween(before, after, ["role", "sees_bodies"]);
      await noteAct(world, request, { org_id: orgId, operation: "updateMember", id, changes });
      return { person: after };
    },
  );

  api.delete(
    `${path}/:id`,
    {
      config: PROVED,
      schema: {
        operationId: "removeMember",
        tags,
        summary: "Take somebody out of the organization",
        description: "Owners only, but everybody may leave. It counts from the next request on.",
        params: RecordParams,
        response: answers({ 200: Deleted }, [404, 409]),
      },
    },
    async (request) => {
      const { id } = request.params;
      const orgId = await ownOrganization(world, request, id === request.session.person.id ? null : "owner");
      const { role } = await removeMember(world, orgId, id);
      const changes = [{ field: "role", before: role, after: null }];
      await noteAct(world, request, { org_id: orgId, operation: "removeMember", id, changes });
      return { deleted: true, id };
    },
  );
}

const INVITATIONS = "/dashboard/api/organizations/:org_id/invitations";

function mountInvitations(api: Api, world: PeopleWorld): void {
  api.get(
    INVITATIONS,
    {
      schema: {
        operationId: "listInvitations",
        tags,
        summary: "List invitations that nobody used yet, newest first",
        params: OrgParams,
        response: answers(
          { 200: Named("InvitationList", Type.Object({ invitations: Type.Array(Invitation) })) },
          [404],
        ),
      },
    },
    async (request) => {
      const orgId = await ownOrganization(world, request, "owner");
      const now = new Date(world.clock.now());
      return { invitations: await world.db.asOrg(orgId, (tx) => queries.listInvitations(tx, orgId, now)) };
    },
  );

  api.post(
    INVITATIONS,
    {
      config: PROVED,
      schema: {
        operationId: "createInvitation",
        tags,
        summary: "Invite somebody",
        description:
          "Owners only. The link works once, for seven days. It is mailed where the service's own domain is ready, and " +
          "else shown once, to be handed on; the audit log says to whom (`showInvitationLink`).",
        params: OrgParams,
        body: Closed({ email: Email, role: Role }),
        response: answers(
          {
            201: Named(
              "NewInvitation",
              Type.Object({
                invitation: Invitation,
                link: Nullable(Type.String({ description: "null: it was mailed" })),
              }),
            ),
          },
          [404, 409],
        ),
      },
    },
    async (request, reply) => {
      const orgId = await ownOrganization(world, request, "owner");
      await countMail(world, `invitations ${orgId}`);
      const { invitation, link } = await invite(world, orgId, request.body);
      const changes = [{ field: "role", before: null, after: invitation.role }];
      await noteAct(world, request, { org_id: orgId, operation: "createInvitation", id: invitation.id, changes });
      const isMailed = await mailInvitation(world, { ...invitation, org_id: orgId, link, by: request.session.person });
      // Somebody who sees the link could use it in the name of the person it is for.
      if (!isMailed) {
        await noteShown(world, link);
        await noteAct(world, request, { org_id: orgId, operation: "showInvitationLink", id: invitation.id });
      }
      return reply.code(201).send({ invitation, link: isMailed ? null : link });
    },
  );
}

function mountTakingBack(api: Api, world: PeopleWorld): void {
  api.delete(
    `${INVITATIONS}/:id`,
    {
      schema: {
        operationId: "deleteInvitation",
        tags,
        summary: "Take an invitation back",
        params: RecordParams,
        response: answers({ 200: Deleted }, [404]),
      },
    },
    async (request) => {
      const { id } = request.params;
      const orgId = await ownOrganization(world, request, "owner");
      const dropped = isUuid(id) ? await world.db.asOrg(orgId, (tx) => queries.dropInvitation(tx, orgId, id)) : 0;
      if (dropped === 0) throw notFound("invitation");
      await noteAct(world, request, { org_id: orgId, operation: "deleteInvitation", id: id });
      return { deleted: true, id };
    },
  );
}

/** The organization of the path, if the person belongs to it, with that role where one is needed. */
async function ownOrganization(
  world: PeopleWorld,
  request: FastifyRequest,
  role: "owner" | null = null,
): Promise<string> {
  const { org_id } = request.params as { org_id: string };
  const { id } = request.session.person;
  const [member] = isUuid(org_id) ? await queries.findMembership(world.db, org_id, id) : [];
  if (!member) throw notFound("organization");
  if (request.method !== "GET") refuseIfMoving(world, org_id);
  if (role !== null && member.role !== role) throw new Refusal("role_not_allowed", "people are for owners to change");
  return org_id;
}

type PeopleAct = { org_id: string; operation: string; id: string; changes?: Change[] };

async function noteAct(
  world: PeopleWorld,
  request: FastifyRequest,
  { org_id, operation, id, changes = [] }: PeopleAct,
): Promise<void> {
  const by = { person: request.session.person, request };
  const fields = Object.keys((request.body ?? {}) as object);
  await notePerson(world, org_id, { ...by, operation, target: { id }, fields, changes });
}
