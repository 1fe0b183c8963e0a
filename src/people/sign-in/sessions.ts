// Sessions of people: a random token in a cookie, of which only the SHA-256 is kept. A session ends 12 hours after its last
// use, and 30 days after it began. A new sign-in always gets a new token (no fixation).
import { createHash } from "node:crypto";
import type { World } from "../../platform/world.ts";
import * as queries from "../queries.ts";
import type { Client, Session } from "../types.ts";

const TOKEN_BYTES = 32;
const TOKEN = /^[A-Za-z0-9_-]{43}$/;
const IDLE_MS = 12 * 3_600_000;
export const SESSION_MS = 30 * 86_400_000;
const TOUCH_EVERY_MS = 60_000;
/** So long after a password or passkey dangerous acts need no further one. */
const PROVED_MS = 10 * 60_000;
const USER_AGENT_MAX = 300;

type SessionWorld = Pick<World, "db" | "clock" | "random" | "log">;

/** Who a session is for. `password`: as it was kept when they showed it; null where something else let them in. */
export type Shown = { id: string; password: string | null };

/** Begins one, and answers its token; null where the password that was shown does not count any more. */
export async function startSession(world: SessionWorld, who: Shown, client: Client): Promise<string | null> {
  const token = newToken(world);
  const row = {
    digest: tokenDigest(token),
    id: world.random.uuid(),
    person_id: who.id,
    at: new Date(world.clock.now()),
    ip: client.ip,
    user_agent: client.user_agent.slice(0, USER_AGENT_MAX),
  };
  return (await queries.insertSession(world.db, row, who.password)) > 0 ? token : null;
}

/** The session of a token that somebody sent, or null. */
export async function findSession(world: SessionWorld, token: string): Promise<Session | null> {
  if (!TOKEN.test(token)) return null;
  const digest = tokenDigest(token);
  const [row] = await queries.findSession(world.db, digest, sessionBounds(world));
  if (!row) return null;
  const now = world.clock.now();
  if (now - row.seen_at.getTime() > TOUCH_EVERY_MS) await queries.touchSession(world.db, digest, new Date(now));
  const { session_id, session_created_at, seen_at, proved_at, ...person } = row;
  return { id: session_id, digest, person, created_at: session_created_at, seen_at, proved_at };
}

/** What is older is no session any more. */
export function sessionBounds({ clock }: Pick<World, "clock">): { idle: Date; begun: Date } {
  const now = clock.now();
  return { idle: new Date(now - IDLE_MS), begun: new Date(now - SESSION_MS) };
}

/** Until when the session may do what is dangerous. */
export function provedUntil({ proved_at }: Pick<Session, "proved_at">): Date {
  return new Date(proved_at.getTime() + PROVED_MS);
}

/** 256 random bits as they stand in cookies and links. */
export function newToken({ random }: Pick<World, "random">): string {
  return random.bytes(TOKEN_BYTES).toString("base64url");
}

export function tokenDigest(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
