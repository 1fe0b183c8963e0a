// The audit log: every change that a key or a command made, with who, when and from where. It names what was changed and which
// fields were given, and has the values of those that hold no text of a person's and no secret (changes.ts). Face of the
// feature. A change is noted before its answer leaves.

import { userInfo } from "node:os";
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from "fastify";
import { endOf, readDayOrTime } from "../http/date-range.ts";
import type { Account, JsonSchema } from "../http/http.ts";
import { isUuid } from "../platform/database/db.ts";
import type { Page } from "../platform/database/page.ts";
import { totalOf } from "../platform/database/totals.ts";
import type { World } from "../platform/world.ts";
import { type Change, changesBetween, changesOf, showsValues } from "./changes.ts";
import * as queries from "./queries.ts";

export { type Change, changesBetween } from "./changes.ts";
export { countNamed } from "./queries.ts";

type AuditWorld = Pick<World, "db" | "clock" | "random" | "log">;

/** What of an organization is noted when somebody changes it. */
export const ORGANIZATION_FIELDS = ["name", "plan", "state", "requests_per_second", "monthly_quota"] as const;

/** What asks for something by POST and changes no settings: mail has its own timeline. */
const NO_CHANGES = new Set([
  ...["sendEmail", "sendBatch", "simulateInboundEmail", "previewTemplate", "testInboundRule", "testWebhook"],
  ...["previewSuppressionImport", "verifyDomain", "verifyDkimKeys", "uploadDmarcReport"],
]);
const FIELDS_MAX = 100;

/** A hook for `preSerialization`: notes what succeeded of a change that a key asked for. */
export function noteChanges(world: AuditWorld) {
  return async (request: FastifyRequest, reply: FastifyReply, payload: unknown): Promise<unknown> => {
    const operation = operationOf(request);
    if (operation === null || reply.statusCode >= 400) return payload;
    const { account, params } = request;
    await note(world, account.org_id, {
      ...whoAsks(account),
      ...{ ip: request.ip, operation, request_id: request.id },
      target: targetOf(params, payload),
      fields: givenIn(request),
      changes: changesOf(bodySchema(request), givenOf(request), {
        before: replaced.get(request),
        hasNames: hasNames(request),
      }),
      ...said.get(request),
    });
    return payload;
  };
}

/** What routes say of their changes themselves. */
const said = new WeakMap<FastifyRequest, Pick<PersonAct, "target" | "fields" | "changes">>();

/** Says which of these fields a request changed that its body does not show: those of a switch with a path of its own. */
export function sayChanged<R extends { id: string }>(
  request: FastifyRequest,
  before: R,
  after: R,
  fields: (keyof R & string)[],
): void {
  said.set(request, { target: { id: after.id }, fields, changes: changesBetween(before, after, fields) });
}

/** Records as they were before a request that replaces some of their fields. */
const replaced = new WeakMap<FastifyRequest, unknown>();

/** Names of the fields of a body as it came: its validator adds those that have a default. */
const given = new WeakMap<FastifyRequest, readonly string[]>();

/** The body without what was not given. */
function givenOf(request: FastifyRequest): unknown {
  const { body } = request;
  const names = given.get(request);
  if (names === undefined || body === null || typeof body !== "object") return body;
  return Object.fromEntries(Object.entries(body).filter(([name]) => names.includes(name)));
}

/**
 * Remembers of each request to change a record what it gives, and what it is about to replace: what GET answers at the same path, asked
 * as the same account. Routes that change nothing, such as those that send, do nothing more.
 */
export function rememberReplaced(scope: FastifyInstance): void {
  const reading = new Map<string, RouteOptions["handler"]>();
  const rememberGiven = async (request: FastifyRequest): Promise<void> => {
    const { body } = request;
    if (body !== null && typeof body === "object") given.set(request, Object.keys(body));
  };
  const readBefore = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const read = reading.get(request.routeOptions.url ?? "");
    if (!read || !showsValues(bodySchema(request), givenOf(request), hasNames(request))) return;
    try {
      replaced.set(request, await read.call(scope, Object.create(request, { query: { value: {} } }), reply));
    } catch {
      // What cannot be read cannot be changed either, and the change says why.
    }
  };
  scope.addHook("onRoute", (route) => {
    const { method, url, handler, schema } = route;
    // A handler that takes the reply may write to it: it is not asked in between.
    if (method === "GET" && handler.length < 2) reading.set(url, handler);
    if (changingOperation(String(method), schema) === null) return;
    route.preValidation = [route.preValidation ?? [], rememberGiven].flat();
    if (method === "PUT" || method === "PATCH") route.preHandler = [route.preHandler ?? [], readBefore].flat();
  });
}

function bodySchema({ routeOptions }: FastifyRequest): unknown {
  return routeOptions.schema?.body ?? {};
}

/** Names of masked addresses and of their contacts are people's; operations without a tag are the password managers' ways to them. */
function hasNames({ routeOptions }: FastifyRequest): boolean {
  const { tags = [] } = (routeOptions.schema ?? {}) as { tags?: readonly string[] };
  return tags.length > 0 && !tags.some((tag) => tag.startsWith("Masked"));
}

function whoAsks({ key_id, key_name, person }: Account) {
  if (person) return { actor: "person", key_id: null, person_id: person.id, name: person.email } as const;
  return { actor: "key", key_id, person_id: null, name: key_name } as const;
}

export type PersonAct = {
  person: { id: string; email: string };
  request: Pick<FastifyRequest, "ip" | "id">;
  operation: string;
  target?: Record<string, string>;
  fields?: string[];
  changes?: Change[];
};

/** Notes what a person did to an organization outside /v1: invitations, roles, plans. */
export async function notePerson(
  world: AuditWorld,
  orgId: string,
  { person, request, operation, target = {}, fields = [], changes = [] }: PersonAct,
): Promise<void> {
  const who = { actor: "person", key_id: null, person_id: person.id, name: person.email } as const;
  await note(world, orgId, { ...who, ip: request.ip, request_id: request.id, operation, target, fields, changes });
}

/** The same for an act that is about several organizations: an entry in the log of each, all or none. */
export async function notePersonInAll(
  world: AuditWorld,
  orgIds: string[],
  { person, request, operation, target = {}, fields = [], changes = [] }: PersonAct,
): Promise<void> {
  const at = new Date(world.clock.now());
  const who = { actor: "person", key_id: null, person_id: person.id, name: person.email } as const;
  const entry = { ...who, ip: request.ip, request_id: request.id, operation, target, fields, changes, at };
  const owners = orgIds.map((org_id) => ({ org_id, id: world.random.uuid() }));
  try {
    await queries.insertEntryInAll(world.db, owners, entry);
  } catch (err) {
    const { request_id } = entry;
    const about = { organizations: owners.length, operation, target, request_id };
    world.log.error({ err, ...about }, "a change is not in the audit logs");
  }
}

function operationOf({ method, routeOptions }: FastifyRequest): string | null {
  return changingOperation(method, routeOptions.schema);
}

/** The id of an operation that changes something; null for one that reads or sends. */
function changingOperation(method: string, schema: unknown): string | null {
  const { operationId } = (schema ?? {}) as { operationId?: string };
  if (operationId === undefined || method === "GET" || method === "HEAD" || NO_CHANGES.has(operationId)) return null;
  return operationId;
}

/** Names of fields that the operation knows; password managers send others too, and what those are called is free text. */
function givenIn(request: FastifyRequest): string[] {
  const body = givenOf(request);
  if (body === null || typeof body !== "object") return [];
  const schema = bodySchema(request) as JsonSchema;
  const known = [schema, ...(schema.anyOf ?? [])].map(({ properties }) => properties ?? {});
  const isKnown = (name: string) => known.some((properties) => Object.hasOwn(properties, name));
  return Object.keys(body).filter(isKnown).slice(0, FIELDS_MAX);
}

/** What the path names, and the record: where it stands in the path under a name of its own, `id` stays what it belongs to. */
function targetOf(params: unknown, payload: unknown): Record<string, string> {
  const named = namesIn(params);
  const { id, ...others } = named;
  const record = createdIn(payload);
  return id !== undefined && Object.values(others).some((one) => one === record.id) ? named : { ...named, ...record };
}

/** Names in the path; an address of a person is left out. */
function namesIn(params: unknown): Record<string, string> {
  const named = Object.entries((params ?? {}) as Record<string, string>);
  return Object.fromEntries(named.filter(([, value]) => !value.includes("@")));
}

/** The id of what was made or changed: the answer's own, or that of the record in it. */
function createdIn(payload: unknown): { id?: string } {
  if (payload === null || typeof payload !== "object") return {};
  const records = [payload, ...Object.values(payload)];
  for (const record of records) {
    const id = record !== null && typeof record === "object" ? (record as { id?: unknown }).id : undefined;
    if (typeof id === "string" && isUuid(id)) return { id };
  }
  return {};
}

/** Who started the command, before it left root for the data folder's owner; a number may have no name (a container). */
const PERSON = nameOfPerson();

function nameOfPerson(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.()}`;
  }
}

export type CommandAct = { command: string } & Pick<PersonAct, "target" | "fields" | "changes">;

/** Notes what somebody did to an organization at the command line. */
export async function noteCommand(
  world: AuditWorld,
  orgId: string,
  { command, target = {}, fields = [], changes = [] }: CommandAct,
): Promise<void> {
  const who = { actor: "command", key_id: null, person_id: null, name: PERSON, ip: null, request_id: null } as const;
  await note(world, orgId, { ...who, operation: command, target, fields, changes });
}

type Noted = Omit<queries.AuditEntry, "id" | "at">;

/** A change that was made stands, also where it cannot be noted: the log of the process says so. */
async function note(world: AuditWorld, orgId: string, entry: Noted): Promise<void> {
  const row = { ...entry, id: world.random.uuid(), at: new Date(world.clock.now()) };
  try {
    await world.db.asOrg(orgId, (tx) => queries.insertEntry(tx, orgId, row));
  } catch (err) {
    const { operation, key_id, target, request_id } = entry;
    world.log.error({ err, org_id: orgId, operation, key_id, target, request_id }, "a change is not in the audit log");
  }
}

export type AuditQuery = { operation?: string; key_id?: string; from_date?: string; to_date?: string };

/** One page of the organization's log, newest first, with the total. */
export async function listEntries(
  world: Pick<World, "db">,
  orgId: string,
  { from_date, to_date, ...rest }: AuditQuery,
  page: Page,
) {
  const filter: queries.AuditFilter = {
    ...rest,
    ...(from_date === undefined ? {} : { from: new Date(readDayOrTime("from_date", from_date).ms) }),
    ...(to_date === undefined ? {} : { to: new Date(endOf(readDayOrTime("to_date", to_date))) }),
  };
  return world.db.asOrg(orgId, async (tx) => {
    const entries = await queries.listEntries(tx, orgId, filter, page);
    const total = await totalOf(entries.length, page, () => queries.countEntries(tx, orgId, filter));
    return { entries, ...total, ...page };
  });
}
