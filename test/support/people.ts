// Browsers of people for tests of a TestApi: they keep the cookie, and send what the dashboard's pages send.
import assert from "node:assert/strict";
import { makeSetUpLink } from "../../src/people/people.ts";
import { tokenDigest } from "../../src/people/sign-in/sessions.ts";
import type { Answer, TestApi } from "./api.ts";

export const PASSWORD = "correct horse battery";

type Asked = { body?: unknown; headers?: Record<string, string>; environment?: "live" | "test" };

export type Browser = {
  /** A request of the dashboard's pages. */
  ask(method: string, path: string, body?: unknown, options?: { headers?: Record<string, string> }): Promise<Answer>;
  /** A request to /v1 for an organization, live by default. */
  v1(method: string, path: string, orgId: string, asked?: Asked): Promise<Answer>;
  token(): string | null;
  plant(token: string): void;
  /** Makes the session's `column` older. */
  age(column: string, interval: string): Promise<void>;
  /** The password was shown long ago. */
  forgetProof(): Promise<void>;
};

/** A browser that nobody has signed in with. An empty header is not sent. */
export function browserOf(
  api: TestApi,
  { ip, host = "api.postern.test", origin = `https://${host}` }: { ip?: string; host?: string; origin?: string } = {},
): Browser {
  const cookies = new Map<string, string>();
  const name = host.startsWith("127.") ? "postern" : "__Host-postern";
  const send = async (method: string, path: string, body: unknown, more: Record<string, string>): Promise<Answer> => {
    const all: Record<string, string> = { host, ...more };
    if (method !== "GET") Object.assign(all, { origin, "x-postern-dashboard": "1", ...more });
    if (cookies.size > 0) all.cookie = [...cookies].map((pair) => pair.join("=")).join("; ");
    const headers = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ""));
    const answer = await api.ask(method, path, body, { key: null, headers, ...(ip ? { ip } : {}) });
    for (const set of [answer.headers["set-cookie"] ?? []].flat()) {
      const [, named = "", value = ""] = /^([\w-]+)=([^;]*);/.exec(String(set)) ?? [];
      if (value === "") cookies.delete(named);
      else cookies.set(named, value);
    }
    return answer;
  };
  const age = async (column: string, interval: string): Promise<void> => {
    const at = new Date(api.world.clock.now());
    const touched = await api.world.db.execute(
      `update person_session set ${column} = $2::timestamptz - interval '${interval}' where digest = $1`,
      [tokenDigest(cookies.get(name) ?? ""), at],
    );
    assert.equal(touched, 1);
  };
  return {
    ask: (method, path, body, { headers = {} } = {}) => send(method, path, body, headers),
    v1: (method, path, orgId, { body, headers = {}, environment = "live" } = {}) =>
      send(method, path, body, {
        "x-postern-organization": orgId,
        "x-postern-environment": environment,
        ...headers,
      }),
    token: () => cookies.get(name) ?? null,
    plant: (token) => {
      cookies.set(name, token);
    },
    age,
    forgetProof: () => age("proved_at", "11 minutes"),
  };
}

/** The owner of an organization (the first one by default), who used a set-up link and is signed in. */
export async function setUp(
  api: TestApi,
  email: string,
  orgId: string = api.org_id,
  at: { ip?: string } = {},
): Promise<Browser> {
  const token = (await makeSetUpLink(api.world, orgId)).split("#")[1];
  const browser = browserOf(api, at);
  const use = { token, email, name: "", password: PASSWORD };
  const used = await browser.ask("POST", "/dashboard/api/links/use", use);
  assert.equal(used.status, 200, JSON.stringify(used.body));
  return browser;
}
