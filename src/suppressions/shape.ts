// What answers say of an entry of the suppression list.
import { Type } from "typebox";
import { Id, Named, Nullable, OneOf, Time } from "../http/http.ts";
import { SCOPE_TYPES } from "./import/scope.ts";

export const ReasonWord = OneOf(["hard_bounce", "complaint", "manual", "unsubscribe"]);
export const ScopeWord = Named(
  "SuppressionScope",
  OneOf(SCOPE_TYPES, {
    description:
      "org: every mail; domain: mail from it; template: mail made of it; list: mail with that `unsubscribe.list`; stream: of that " +
      "class (`transactional`, `bulk`) or with that tag",
  }),
);

export const Suppression = Named(
  "Suppression",
  Type.Object({
    id: Id,
    email: Type.String({ description: "Lower-cased" }),
    reason: ReasonWord,
    scope_type: ScopeWord,
    scope_id: Nullable(Type.String({ description: "Null exactly for the scope org" })),
    source: Type.String({ description: "manual, unsubscribe, delivery_event or `import:<provider>`" }),
    source_message_id: Nullable(Id),
    bounce_code: Nullable(Type.String({ description: "SMTP reply code, such as 550" })),
    diag_code: Nullable(Type.String({ description: "Enhanced status code (RFC 3463), such as 5.1.1" })),
    feedback_type: Nullable(Type.String({ description: "Of a complaint (RFC 5965), such as abuse" })),
    note: Nullable(Type.String()),
    expires_at: Nullable(Time),
    created_at: Time,
  }),
);
