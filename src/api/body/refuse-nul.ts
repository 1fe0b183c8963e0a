// U+0000 in a path or a query, which PostgreSQL's text cannot hold, ends before any feature. Not here: bodies (json-body.ts).
import type { FastifyRequest } from "fastify";
import { hasNul } from "../../platform/database/storable.ts";
import { notFound } from "../../platform/refusal.ts";

/** A hook for U+0000 (`%00`): in a path it names nothing (404), in a query it is the 400 that names the parameter. */
export async function refuseNul(request: FastifyRequest): Promise<void> {
  if (!request.url.includes("%00")) return;
  const isInPath = Object.values((request.params ?? {}) as object).some((value) => String(value).includes("\0"));
  if (isInPath) throw notFound("resource");
  for (const [name, value] of Object.entries((request.query ?? {}) as Record<string, unknown>)) {
    if ([name, value].flat().some((text) => String(text).includes("\0"))) throw hasNul(name);
  }
}
