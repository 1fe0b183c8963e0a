// The records of /dashboard/api as its description has them.
import type { RegistrationResponseJSON } from "@simplewebauthn/server";
import { type Static, Type } from "typebox";
import { Id, Named, Nullable, OneOf, Time } from "../http/http.ts";
import { PERSON_ROLES } from "./types.ts";

export const Role = Named(
  "Role",
  OneOf(PERSON_ROLES, {
    description:
      "owner: everything. admin: all but people. developer: no people, no live keys. viewer: reads, bodies of messages only where sees_bodies",
  }),
);

const Person = Named(
  "Person",
  Type.Object({
    id: Id,
    email: Type.String(),
    name: Type.String({ description: "May be empty" }),
    is_operator: Type.Boolean({ description: "Looks after the installation: reviews, plans, states, health" }),
    has_totp: Type.Boolean({ description: "Signing in needs a code of an authenticator app" }),
    recovery_codes_left: Type.Integer(),
    has_password: Type.Boolean(),
    has_passkey: Type.Boolean(),
    has_provider: Type.Boolean({ description: "Signs in at the OpenID Connect provider" }),
  }),
);

const Membership = Named(
  "Membership",
  Type.Object(
    {
      id: Type.String({ format: "uuid", description: "Of the organization: the value of X-Postern-Organization" }),
      name: Type.String(),
      plan: OneOf(["free", "starter", "growth", "scale", "enterprise"]),
      state: OneOf(["pending_review", "active", "suspended", "moving"]),
      role: Role,
      sees_bodies: Type.Boolean({ description: "May see bodies of messages, if the role alone would not let them" }),
    },
    { description: "An organization that the person belongs to" },
  ),
);

export const SessionShown = Named(
  "Session",
  Type.Object({
    person: Person,
    organizations: Type.Array(Membership),
    session: Named(
      "SessionTimes",
      Type.Object({
        id: Id,
        created_at: Time,
        proved_until: { ...Time, description: "Until then dangerous acts need no password again" },
      }),
    ),
  }),
);

export const ListedSession = Named(
  "ListedSession",
  Type.Object({
    id: Id,
    created_at: Time,
    seen_at: Time,
    ip: Type.String(),
    user_agent: Type.String(),
    is_current: Type.Boolean({ description: "The one that asks" }),
  }),
);

export const Link = Named(
  "Link",
  Type.Object({
    kind: OneOf(["set_up", "invitation", "reset", "sign_up"]),
    organization_id: Nullable(Id),
    organization_name: Nullable(
      Type.String({ description: "Where the person would belong; null for a reset, and where it is yet to be made" }),
    ),
    email: Nullable(Type.String({ description: "Whom it is for; null: who sets the installation up says it" })),
    role: Nullable(Role),
  }),
);

export const Member = Named(
  "Member",
  Type.Object({
    id: Id,
    email: Type.String(),
    name: Type.String(),
    role: Role,
    sees_bodies: Type.Boolean(),
    has_second_factor: Type.Boolean(),
    joined_at: Time,
  }),
);

export const Invitation = Named(
  "Invitation",
  Type.Object({ id: Id, email: Type.String(), role: Role, created_at: Time, expires_at: Time }),
);

export const Password = Type.String({ minLength: 1, maxLength: 1024 });
export const Email = Type.String({ minLength: 3, maxLength: 254 });
export const Code = Type.String({
  minLength: 6,
  maxLength: 40,
  description: "Six digits of the authenticator app, or a recovery code",
});
export const Token = Type.String({ minLength: 1, maxLength: 200, description: "What stands behind the # of the link" });

const Bytes = Type.String({ maxLength: 20_000, pattern: "^[A-Za-z0-9_-]*={0,2}$" });
export const PasskeyAnswer = Type.Object(
  {
    id: Bytes,
    rawId: Bytes,
    type: OneOf(["public-key"]),
    response: Type.Object({ clientDataJSON: Bytes }, { additionalProperties: true }),
    clientExtensionResults: Type.Object({}, { additionalProperties: true }),
  },
  {
    additionalProperties: true,
    description: "What the browser answers, in its JSON form (PublicKeyCredential.toJSON)",
  },
);

/** The browser's own JSON form; what is in it is looked at by the library. */
export function newPasskeyIn(answer: Static<typeof PasskeyAnswer>): RegistrationResponseJSON {
  return answer as unknown as RegistrationResponseJSON;
}
