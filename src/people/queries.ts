// All SQL on people, their sessions, links and memberships. What has no organization in it is for the system alone
// (row-level security says so, too): signing in comes before there is an organization.
import type { Query, Tx } from "../platform/database/db.ts";
import type { LinkKind, PersonRole, PersonRow } from "./types.ts";

const PERSON =
  "id, email, name, password, is_operator, totp, totp_confirmed_at, totp_step, oidc_subject, is_proven, created_at";
const PERSON_OF_P = PERSON.replaceAll(/\b[a-z_]+\b/g, "p.$&");

// People -------------------------------------------------------------------------------------------------------------

export function countPeople(db: Query) {
  return db.query<{ total: number }>("select count(*) as total from person");
}

/** Index: person_email. */
export function findPersonByEmail(db: Query, email: string) {
  return db.query<PersonRow>(`select ${PERSON} from person where email = $1`, [email]);
}

export function findPerson(db: Query, id: string) {
  return db.query<PersonRow>(`select ${PERSON} from person where id = $1`, [id]);
}

export type NewPerson = Pick<PersonRow, "id" | "email" | "name" | "is_operator" | "is_proven" | "created_at">;

export function insertPerson(tx: Tx, row: NewPerson) {
  return tx.execute(
    "insert into person (id, email, name, is_operator, is_proven, created_at) values ($1, $2, $3, $4, $5, $6)",
    [row.id, row.email, row.name, row.is_operator, row.is_proven, row.created_at],
  );
}

/** Touches no row where it was so before. */
export function setProven(tx: Tx, personId: string) {
  return tx.execute("update person set is_proven = true where id = $1 and not is_proven", [personId]);
}

/** Index: person_oidc. */
export function findPersonByOidc(db: Query, subject: string) {
  return db.query<PersonRow>(`select ${PERSON} from person where oidc_subject = $1`, [subject]);
}

/** Touches no row when the provider knew the person as another. */
export function setOidcSubject(db: Query, personId: string, subject: string) {
  return db.execute(
    "update person set oidc_subject = $2 where id = $1 and (oidc_subject is null or oidc_subject = $2)",
    [personId, subject],
  );
}

export function setPassword(db: Query, personId: string, password: string | null) {
  return db.execute("update person set password = $2 where id = $1", [personId, password]);
}

export function setName(db: Query, personId: string, name: string) {
  return db.execute("update person set name = $2 where id = $1", [personId, name]);
}

export function makeOperator(db: Query, personId: string) {
  return db.execute("update person set is_operator = true where id = $1", [personId]);
}

export type ListedPerson = Pick<PersonRow, "id" | "email" | "name" | "is_operator" | "created_at"> & {
  memberships: { org_id: string; role: PersonRole }[];
};

export function listPeople(db: Query) {
  return db.query<ListedPerson>(
    `select p.id, p.email, p.name, p.is_operator, p.created_at,
       coalesce((select jsonb_agg(jsonb_build_object('org_id', m.org_id, 'role', m.role) order by m.created_at)
                   from membership m where m.person_id = p.id), '[]') as memberships
       from person p order by p.email`,
  );
}

// Second factor: TOTP ------------------------------------------------------------------------------------------------

export function setTotp(db: Query, personId: string, totp: Buffer | null) {
  return db.execute("update person set totp = $2, totp_confirmed_at = null, totp_step = 0 where id = $1", [
    personId,
    totp,
  ]);
}

export function confirmTotp(tx: Tx, personId: string, at: Date) {
  return tx.execute("update person set totp_confirmed_at = $2 where id = $1 and totp is not null", [personId, at]);
}

/** Touches no row when that step, or a later one, was used already. */
export function useTotpStep(db: Query, personId: string, step: number) {
  return db.execute("update person set totp_step = $2 where id = $1 and totp_step < $2", [personId, step]);
}

export function dropRecoveryCodes(db: Query, personId: string) {
  return db.execute("delete from recovery_code where person_id = $1", [personId]);
}

export function insertRecoveryCodes(tx: Tx, personId: string, digests: Buffer[]) {
  return tx.execute("insert into recovery_code (person_id, digest) select $1, unnest($2::bytea[]) returning 1", [
    personId,
    digests,
  ]);
}

export function useRecoveryCode(db: Query, personId: string, digest: Buffer, at: Date) {
  return db.execute("update recovery_code set used_at = $3 where person_id = $1 and digest = $2 and used_at is null", [
    personId,
    digest,
    at,
  ]);
}

export function countRecoveryCodes(db: Query, personId: string) {
  return db.query<{ total: number }>(
    "select count(*) as total from recovery_code where person_id = $1 and used_at is null",
    [personId],
  );
}

// Tries --------------------------------------------------------------------------------------------------------------

/** One try of the bucket: touches no row when it is empty. */
export function takeTry(db: Query, name: Buffer, { now, next, latest, each_s }: TryTimes) {
  return db.execute(
    `insert into sign_in_try as t (name, full_at) values ($1, $2)
     on conflict (name) do update set full_at = greatest(t.full_at, $3) + $5 * interval '1 second'
      where greatest(t.full_at, $3) + $5 * interval '1 second' <= $4`,
    [name, next, now, latest, each_s],
  );
}

type TryTimes = { now: Date; next: Date; latest: Date; each_s: number };

export function forgetTries(db: Query, name: Buffer) {
  return db.execute("delete from sign_in_try where name = $1", [name]);
}

// Sessions -----------------------------------------------------------------------------------------------------------

export type NewSession = { digest: Buffer; id: string; person_id: string; at: Date; ip: string; user_agent: string };

/** `password`: only while it is the person's; it waits for who is changing it. Touches no row then. Citus takes no lock in the select of an insert. */
export function insertSession(db: Query, row: NewSession, password: string | null) {
  return db.execute(
    `with who as (select id from person where id = $3 and ($7::text is null or password = $7) for share)
     insert into person_session (digest, id, person_id, created_at, seen_at, proved_at, ip, user_agent)
     select $1::bytea, $2::uuid, who.id, $4::timestamptz, $4::timestamptz, $4::timestamptz, $5::text, $6::text from who
     on conflict (digest) do nothing`,
    [row.digest, row.id, row.person_id, row.at, row.ip, row.user_agent, password],
  );
}

export type FoundSession = PersonRow & {
  session_id: string;
  session_created_at: Date;
  seen_at: Date;
  proved_at: Date;
};

/** Index: person_session_pkey. */
export function findSession(db: Query, digest: Buffer, { idle, begun }: { idle: Date; begun: Date }) {
  return db.query<FoundSession>(
    `select ${PERSON_OF_P}, s.id as session_id, s.created_at as session_created_at, s.seen_at, s.proved_at
       from person_session s join person p on p.id = s.person_id
      where s.digest = $1 and s.seen_at > $2 and s.created_at > $3`,
    [digest, idle, begun],
  );
}

export function touchSession(db: Query, digest: Buffer, at: Date) {
  return db.execute("update person_session set seen_at = $2 where digest = $1", [digest, at]);
}

export function proveSession(db: Query, digest: Buffer, at: Date) {
  return db.execute("update person_session set proved_at = $2 where digest = $1", [digest, at]);
}

export type ListedSession = { id: string; created_at: Date; seen_at: Date; ip: string; user_agent: string };

export function listSessions(db: Query, personId: string, { idle, begun }: { idle: Date; begun: Date }) {
  return db.query<ListedSession>(
    `select id, created_at, seen_at, ip, user_agent from person_session
      where person_id = $1 and seen_at > $2 and created_at > $3 order by seen_at desc limit 100`,
    [personId, idle, begun],
  );
}

export function endSession(db: Query, digest: Buffer) {
  return db.execute("delete from person_session where digest = $1", [digest]);
}

export function endSessionById(db: Query, personId: string, id: string) {
  return db.execute("delete from person_session where person_id = $1 and id = $2", [personId, id]);
}

/** Ends all sessions of a person but the one with this digest. */
export function endSessions(db: Query, personId: string, but: Buffer | null = null) {
  return db.execute("delete from person_session where person_id = $1 and ($2::bytea is null or digest <> $2)", [
    personId,
    but,
  ]);
}

export function purgeSessions(db: Query, { idle, begun }: { idle: Date; begun: Date }, limit: number) {
  return db.execute(
    `delete from person_session where digest in (
       select digest from person_session where seen_at < $1 or created_at < $2 limit $3 for update skip locked)`,
    [idle, begun, limit],
  );
}

export function purgeTries(db: Query, before: Date, limit: number) {
  return db.execute(
    `delete from sign_in_try where name in (
       select name from sign_in_try where full_at < $1 order by full_at limit $2 for update skip locked)`,
    [before, limit],
  );
}

export function purgeLinks(db: Query, before: Date, limit: number) {
  return db.execute(
    `delete from person_link where digest in (
       select digest from person_link where expires_at < $1 limit $2 for update skip locked)`,
    [before, limit],
  );
}

// Links --------------------------------------------------------------------------------------------------------------

export type LinkRow = {
  id: string;
  digest: Buffer;
  kind: LinkKind;
  org_id: string | null;
  person_id: string | null;
  email: string | null;
  role: PersonRole | null;
  drops_factors: boolean;
  /** Nobody but the reader of the address's mail has seen it. */
  is_mailed: boolean;
  created_at: Date;
  expires_at: Date;
};

export function insertLink(db: Query, row: LinkRow) {
  return db.execute(`insert into person_link (${LINK}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`, [
    ...[row.id, row.digest, row.kind, row.org_id, row.person_id, row.email, row.role],
    ...[row.drops_factors, row.is_mailed, row.created_at, row.expires_at],
  ]);
}

const LINK = "id, digest, kind, org_id, person_id, email, role, drops_factors, is_mailed, created_at, expires_at";

export function setShown(db: Query, digest: Buffer) {
  return db.execute("update person_link set is_mailed = false where digest = $1", [digest]);
}

export function findLink(db: Query, digest: Buffer, now: Date) {
  return db.query<LinkRow>(
    `select ${LINK} from person_link where digest = $1 and used_at is null and expires_at > $2`,
    [digest, now],
  );
}

/** The invitation of this address, to this organization or any, that was made last, if one may still be used. */
export function findInvitation(db: Query, email: string, orgId: string | null, now: Date) {
  return db.query<LinkRow>(
    `select ${LINK} from person_link
      where email = $1 and kind = 'invitation' and used_at is null and expires_at > $2
        and ($3::uuid is null or org_id = $3) order by id desc limit 1`,
    [email, now, orgId],
  );
}

/** Touches no row when somebody else was faster. */
export function useLink(tx: Tx, digest: Buffer, now: Date) {
  return tx.execute("update person_link set used_at = $2 where digest = $1 and used_at is null and expires_at > $2", [
    digest,
    now,
  ]);
}

export type Invitation = { id: string; email: string; role: PersonRole; created_at: Date; expires_at: Date };

export function listInvitations(tx: Tx, orgId: string, now: Date) {
  return tx.query<Invitation>(
    `select id, email, role, created_at, expires_at from person_link
      where org_id = $1 and kind = 'invitation' and used_at is null and expires_at > $2 order by id desc limit 200`,
    [orgId, now],
  );
}

export function dropInvitation(tx: Tx, orgId: string, id: string) {
  return tx.execute(
    "delete from person_link where org_id = $1 and id = $2 and kind = 'invitation' and used_at is null",
    [orgId, id],
  );
}

/** Earlier invitations of the same address no longer count. */
export function dropInvitationsOf(tx: Tx, orgId: string, email: string) {
  return tx.execute(
    "delete from person_link where org_id = $1 and email = $2 and kind = 'invitation' and used_at is null",
    [orgId, email],
  );
}

export function dropSignUpLinks(db: Query, email: string) {
  return db.execute("delete from person_link where kind = 'sign_up' and email = $1 and used_at is null", [email]);
}

export function dropUnusedLinks(db: Query, kind: LinkKind, personId: string | null) {
  return db.execute(
    "delete from person_link where kind = $1 and person_id is not distinct from $2::uuid and used_at is null",
    [kind, personId],
  );
}

// Memberships --------------------------------------------------------------------------------------------------------

export type MembershipRow = { org_id: string; role: PersonRole; sees_bodies: boolean };

/** Who belongs to it already keeps their role, but becomes owner where that is the one given. */
export function insertMembership(tx: Tx, row: { org_id: string; person_id: string; role: PersonRole; at: Date }) {
  return tx.execute(
    `insert into membership (org_id, person_id, role, created_at) values ($1, $2, $3, $4)
     on conflict (org_id, person_id) do update set role = excluded.role where excluded.role = 'owner'`,
    [row.org_id, row.person_id, row.role, row.at],
  );
}

/** Index: membership_person. */
export function membershipsOf(db: Query, personId: string) {
  return db.query<MembershipRow>(
    "select org_id, role, sees_bodies from membership where person_id = $1 order by created_at, org_id",
    [personId],
  );
}

export function findMembership(db: Query, orgId: string, personId: string) {
  return db.query<MembershipRow>(
    "select org_id, role, sees_bodies from membership where org_id = $1 and person_id = $2",
    [orgId, personId],
  );
}

export type Member = Pick<PersonRow, "id" | "email" | "name"> & {
  role: PersonRole;
  sees_bodies: boolean;
  has_second_factor: boolean;
  joined_at: Date;
};

const MEMBER = `p.id, p.email, p.name, m.role, m.sees_bodies, p.totp_confirmed_at is not null as has_second_factor,
  m.created_at as joined_at`;

export function listMembers(tx: Tx, orgId: string) {
  return tx.query<Member>(
    `select ${MEMBER} from membership m join person p on p.id = m.person_id where m.org_id = $1 order by p.email`,
    [orgId],
  );
}

export function findMember(tx: Tx, orgId: string, personId: string) {
  return tx.query<Member>(
    `select ${MEMBER} from membership m join person p on p.id = m.person_id where m.org_id = $1 and m.person_id = $2`,
    [orgId, personId],
  );
}

/** Keeps the owners, and this member, as they are until the transaction ends; in one order, so that nobody waits for each other. */
export function lockOwnersAnd(tx: Tx, orgId: string, personId: string) {
  return tx.query<{ person_id: string; role: PersonRole }>(
    `select person_id, role from membership where org_id = $1 and (role = 'owner' or person_id = $2)
      order by person_id for update`,
    [orgId, personId],
  );
}

export function changeMember(tx: Tx, orgId: string, row: { person_id: string; role?: string; sees_bodies?: boolean }) {
  return tx.execute(
    `update membership set role = coalesce($3, role), sees_bodies = coalesce($4, sees_bodies)
      where org_id = $1 and person_id = $2`,
    [orgId, row.person_id, row.role ?? null, row.sees_bodies ?? null],
  );
}

export function removeMember(tx: Tx, orgId: string, personId: string) {
  return tx.execute("delete from membership where org_id = $1 and person_id = $2", [orgId, personId]);
}

export type KnownPerson = { id: string; email: string; oidc_subject: string | null };

/**
 * Those of the people who come from elsewhere that are known here, by their id, address or account, with the id that
 * they have here.
 */
export function findKnown(db: Query, people: KnownPerson[]) {
  return db.query<{ id: string; here: string }>(
    `select w.id, p.id as here from unnest($1::uuid[], $2::text[], $3::text[]) as w (id, email, subject)
       join person p on p.id = w.id or p.email = w.email or p.oidc_subject = w.subject`,
    [people.map(({ id }) => id), people.map(({ email }) => email), people.map(({ oidc_subject }) => oidc_subject)],
  );
}

/** Those who belong to no other organization, and operate nothing. */
export function deleteOnlyMembers(db: Query, orgId: string) {
  return db.execute(
    `delete from person p using membership m
      where m.org_id = $1 and m.person_id = p.id and not p.is_operator
        and not exists (select from membership o where o.person_id = p.id and o.org_id <> $1)`,
    [orgId],
  );
}
