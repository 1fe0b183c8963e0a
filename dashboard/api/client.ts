// The one way to the server: typed calls of /v1. Paths, parameters and answers are those of its description.
import createClient from "openapi-fetch";
import type { components, paths } from "./generated/v1.ts";

export type Schemas = components["schemas"];

/** Same origin, with the person's session. */
export const v1 = createClient<paths>({ baseUrl: "", credentials: "same-origin" });

/** A request that was declined, or got no answer (`status` 0). `body` is the API's error object. */
export class Declined extends Error {
  status: number;
  body: Partial<Schemas["Error"]> & Record<string, unknown>;

  constructor(status: number, body: unknown) {
    const fields = typeof body === "object" && body !== null ? (body as Record<string, unknown>) : {};
    super(typeof fields.error === "string" ? fields.error : `HTTP ${status}`);
    this.status = status;
    this.body = fields;
  }
}

type Answer<T> = { data?: T; error?: unknown; response: Response };

/** The answer of a call, or throws Declined. A call without an answer is Declined with status 0. */
export async function take<T>(call: Promise<Answer<T>>): Promise<T> {
  let answer: Answer<T>;
  try {
    answer = await call;
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === "AbortError") throw cause;
    throw new Declined(0, { error: String(cause) });
  }
  if (!answer.response.ok || answer.data === undefined) throw new Declined(answer.response.status, answer.error);
  return answer.data;
}
