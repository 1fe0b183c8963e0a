// Which sources take so long to read that the process for heavy requests does it (api/heavy/heavy.ts). A tag takes up to 50 µs
// of the processor, all else next to nothing: 100 tags as much as the process for heavy requests takes to be asked.
import type { FastifyReply, FastifyRequest } from "fastify";
import type { World } from "../platform/world.ts";
import { findTemplate } from "./templates.ts";
import type { Sources } from "./types.ts";

const TAGS_MAX = 100;
const CHARACTERS_MAX = 64 * 1024;
const PARTS = ["subject", "html_body", "text_body"] as const;

/** True if together they have more than 100 tags, or more than 64 Ki characters. What is not a text counts nothing. */
function areLong(sources: readonly unknown[]): boolean {
  const texts = sources.filter((source) => typeof source === "string");
  const characters = texts.reduce((sum, { length }) => sum + length, 0);
  if (characters > CHARACTERS_MAX) return true;
  let tags = 0;
  for (const text of texts) {
    for (let at = text.indexOf("{{"); at >= 0; at = text.indexOf("{{", at + 2)) tags += 1;
  }
  return tags > TAGS_MAX;
}

/**
 * Before the body is validated: to the other process with what is long, of the sources given and of the stored ones that
 * stay where the path names a template. Variables that fill more than 64 KiB are long too.
 */
export function longAside(world: Pick<World, "db">) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    if (request.aside === null) return undefined;
    const isLong = (request.rawBody?.length ?? 0) > CHARACTERS_MAX || areLong(await sourcesOf(world, request));
    return isLong ? request.aside(reply) : undefined;
  };
}

async function sourcesOf(world: Pick<World, "db">, { body, params, account }: FastifyRequest): Promise<unknown[]> {
  const given: Partial<Sources> = typeof body === "object" && body !== null ? body : {};
  const { id } = params as { id?: string };
  if (id === undefined || PARTS.every((part) => given[part] !== undefined)) return PARTS.map((part) => given[part]);
  const stored = await findTemplate(world, account.org_id, id);
  return PARTS.map((part) => (given[part] === undefined ? stored?.[part] : given[part]));
}
