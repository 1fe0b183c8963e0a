// SASL login to a relay host (RFC 4954): PLAIN (RFC 4616), else LOGIN, which old relays still want.
// The caller has made sure of TLS. Credentials go to the wire and nowhere else.
import type { RawReply } from "./reply.ts";
import type { Wire } from "./wire.ts";

export type Credentials = { user: string; pass: string };

type LoginLimits = { mechanisms: readonly string[]; timeout_ms: number };

/** "accepted", "unsupported" (no mechanism in common, nothing was sent), or the reply that ended it; null if lost. */
export async function login(
  wire: Wire,
  credentials: Credentials,
  limits: LoginLimits,
): Promise<"accepted" | "unsupported" | RawReply | null> {
  const { user, pass } = credentials;
  const encode = (text: string) => `${Buffer.from(text).toString("base64")}\r\n`;
  if (user.includes("\0") || pass.includes("\0")) throw new Error("NUL in credentials");
  const lines = limits.mechanisms.includes("PLAIN")
    ? [`AUTH PLAIN ${encode(`\0${user}\0${pass}`)}`]
    : ["AUTH LOGIN\r\n", encode(user), encode(pass)];
  if (!limits.mechanisms.includes("PLAIN") && !limits.mechanisms.includes("LOGIN")) return "unsupported";
  for (const [index, line] of lines.entries()) {
    const [reply] = await wire.ask(line, 1, limits.timeout_ms);
    if (!reply) return null;
    const isLast = index === lines.length - 1;
    if (reply.code !== (isLast ? 235 : 334)) return reply;
  }
  return "accepted";
}
