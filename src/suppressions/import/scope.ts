// What a suppression covers, as requests and files write it: the whole organization, one sender domain, one template,
// one list, one stream (a message's class, `transactional` or `bulk`, or any of its tags).

export const SCOPE_TYPES = ["org", "domain", "stream", "template", "list"] as const;
export type ScopeType = (typeof SCOPE_TYPES)[number];
/** `scope_id` is empty exactly for `org`. */
export type Scope = { scope_type: ScopeType; scope_id: string };

export const ORG_SCOPE: Scope = { scope_type: "org", scope_id: "" };
export const SCOPE_ID_CHARS_MAX = 256;

export const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const unsafe = /[\p{Cc}\p{Cs}]/u;

/** Checks and normalizes a scope; the problem is a phrase that goes on after "the 'scope_id' field". */
export function readScope(
  scopeType: ScopeType,
  scopeId: string,
): { ok: true; scope: Scope } | { ok: false; problem: string } {
  if (scopeType === "org") {
    return scopeId === "" ? { ok: true, scope: ORG_SCOPE } : { ok: false, problem: "must be absent for the scope org" };
  }
  if (scopeId === "") return { ok: false, problem: `is required for the scope ${scopeType}` };
  if (scopeType === "domain" || scopeType === "template") {
    if (!uuid.test(scopeId)) return { ok: false, problem: `must be the id of a ${scopeType}` };
    return { ok: true, scope: { scope_type: scopeType, scope_id: scopeId.toLowerCase() } };
  }
  if (scopeId.length > SCOPE_ID_CHARS_MAX)
    return { ok: false, problem: `must have at most ${SCOPE_ID_CHARS_MAX} characters` };
  if (unsafe.test(scopeId)) return { ok: false, problem: "must not hold control characters" };
  return { ok: true, scope: { scope_type: scopeType, scope_id: scopeId } };
}
