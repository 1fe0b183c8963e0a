// The one way to the server: typed calls of /v1 and of /dashboard/api. Paths, parameters and answers are those of their
// descriptions. A request that needs the person to sign in or to show the password again waits for it, and is sent again.
import createClient from "openapi-fetch";
import { actingHeaders } from "../lib/acting.ts";
import { type Asked, askPerson } from "../lib/asked.ts";
import type { components as PeopleComponents, paths as PeoplePaths } from "./generated/people.ts";
import type { components, paths } from "./generated/v1.ts";

export type Schemas = components["schemas"];
export type PeopleSchemas = PeopleComponents["schemas"];

/** Shows that a page of the dashboard sent it: other sites cannot. */
const OWN_PAGE = { "x-postern-dashboard": "1" };
const FROM_HERE = { baseUrl: "", credentials: "same-origin", headers: OWN_PAGE } as const;

/** With the person's session, for the organization that they act for. */
export const v1 = createClient<paths>({ ...FROM_HERE, fetch: askAgain });
v1.use({
  onRequest({ request }) {
    for (const [name, value] of Object.entries(actingHeaders()))
      if (!request.headers.has(name)) request.headers.set(name, value);
  },
});

/** For a call that acts as a test key would: everything is checked, nothing leaves. */
export const AS_TEST = { "x-postern-environment": "test" } as const;

/** People, their sessions, the installation. */
export const people = createClient<PeoplePaths>({ ...FROM_HERE, fetch: askAgain });
/** The same before somebody is signed in: what is declined is said at once. */
export const door = createClient<PeoplePaths>(FROM_HERE);

async function askAgain(request: Request): Promise<Response> {
  const again = request.clone();
  const answer = await fetch(request);
  const needed = await neededFor(answer);
  return needed !== null && (await askPerson(needed)) ? fetch(again) : answer;
}

async function neededFor(answer: Response): Promise<Asked | null> {
  if (answer.status === 401) return "sign-in";
  if (answer.status !== 403) return null;
  const body: unknown = await answer
    .clone()
    .json()
    .catch(() => null);
  return typeof body === "object" && body !== null && "code" in body && body.code === "proof_needed" ? "proof" : null;
}

/** A request that was declined, or got no answer (`status` 0). `body` is the API's error object. */
export class Declined extends Error {
  status: number;
  body: { code?: string; field?: string } & Record<string, unknown>;

  constructor(status: number, body: unknown) {
    const fields = typeof body === "object" && body !== null ? (body as Record<string, unknown>) : {};
    super(typeof fields.error === "string" ? fields.error : `HTTP ${status}`);
    this.status = status;
    this.body = fields;
  }
}

/** What the browser did not do, in words for people: it says little of why, on purpose. */
export class NoPasskey extends Error {}

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
