// Links in mail to the owner that act: what they are for is sealed into them, so that they show and hold nothing for others.
// Each kind has a context of its own. Opening one does nothing, because mail scanners open links; the button of its page
// posts.
import { SealBroken } from "../../platform/storage/seal.ts";
import type { World } from "../../platform/world.ts";

type LinkWorld = Pick<World, "seal" | "clock" | "config">;

/** Where the page is, and what keeps its links from being taken for those of another. */
export type LinkKind = { path: string; context: string; lasts_ms: number };

/** The link for what a page does. */
export function sealedLink({ seal, clock, config }: LinkWorld, kind: LinkKind, about: object): string {
  const until = clock.now() + kind.lasts_ms;
  const token = seal.seal(Buffer.from(JSON.stringify({ ...about, until })), kind.context);
  return `${config.base_url}${kind.path}${token.toString("base64url")}`;
}

/** What a link's token holds; null when it is not one of this kind, or its time is over. */
export function readSealed<T>({ seal, clock }: Pick<World, "seal" | "clock">, kind: LinkKind, token: string): T | null {
  if (!/^[A-Za-z0-9_-]{40,2000}$/.test(token)) return null;
  try {
    const held = JSON.parse(seal.open(Buffer.from(token, "base64url"), kind.context).toString());
    return held.until > clock.now() ? held : null;
  } catch (error) {
    if (error instanceof SealBroken) return null;
    throw error;
  }
}
