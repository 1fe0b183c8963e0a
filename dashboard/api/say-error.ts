// What went wrong, as a person would say it: a title, a sentence, and what can be done. The only place that knows codes.
import { sayLimit } from "../lib/limits.ts";
import { Declined, NoPasskey } from "./client.ts";

export type Said = { kind: "error" | "no-permission" | "signed-out" | "not-found"; title: string; text: string };

const BY_CODE: Record<string, Pick<Said, "title"> & { text?: string }> = {
  organization_in_review: { title: "Live sending waits for the review" },
  organization_suspended: { title: "This organization is suspended" },
  plan_limit_reached: { title: "The plan does not include this" },
  test_key_not_allowed: { title: "A test key may not do this" },
  domain_not_ready: { title: "The domain is not ready yet" },
  invalid_state: { title: "That is no longer possible" },
  already_exists: { title: "That is there already" },
  validation_error: { title: "Something in the form is not right" },
  proof_needed: { title: "Your password is needed for this" },
  role_not_allowed: { title: "Your role does not include this" },
  request_not_allowed: { title: "The server did not take this from here" },
};

/** Never empty, never a code alone. */
export function sayError(error: unknown): Said {
  if (error instanceof NoPasskey) return { kind: "error", title: "No passkey", text: error.message };
  if (!(error instanceof Declined)) return bug(error);
  const { status, body } = error;
  const sentence = withStop(typeof body.message === "string" ? body.message : error.message);
  if (status === 0)
    return { kind: "error", title: "The server did not answer", text: "Check the connection, then try again." };
  if (body.code === "sign_in_failed") return { kind: "error", title: "That did not match", text: sentence };
  if (status === 401) return { kind: "signed-out", title: "You are not signed in", text: "Sign in, then go on here." };
  if (status === 404) return { kind: "not-found", title: "Not here", text: sentence };
  if (status === 429) return { kind: "error", ...sayLimit(body) };
  if (status >= 500) return { kind: "error", title: "The server could not answer", text: serverFault(body.request_id) };
  const title = BY_CODE[String(body.code)]?.title;
  if (status === 403) return { kind: "no-permission", title: title ?? "You may not see this", text: sentence };
  return { kind: "error", title: title ?? "That did not work", text: sentence };
}

function bug(error: unknown): Said {
  const text = error instanceof Error ? error.message : String(error);
  return { kind: "error", title: "This page has a fault", text: withStop(`Load it again. It said: ${text}`) };
}

function serverFault(requestId: unknown): string {
  const request = typeof requestId === "string" ? ` The server's log has it under ${requestId}.` : "";
  return `It is not your fault. Try again.${request}`;
}

function withStop(text: string): string {
  const sentence = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
}
