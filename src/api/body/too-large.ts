// A body over the limit of its route: the answer says the limit, so that the sender knows what to leave out.
import type { FastifyRequest } from "fastify";
import { Refusal } from "../../platform/refusal.ts";

const KIB = 1_024;
const MIB = KIB * KIB;

/** 400 `payload_too_large`, with what the operation takes. */
export function bodyTooLarge({ routeOptions }: Pick<FastifyRequest, "routeOptions">): Refusal {
  const { bodyLimit } = routeOptions;
  const most = bodyLimit === undefined ? "" : `: this operation takes at most ${written(bodyLimit)}`;
  return new Refusal("payload_too_large", `the request body is larger than allowed${most}`);
}

function written(bytes: number): string {
  if (bytes % MIB === 0) return `${bytes / MIB} MiB`;
  return bytes % KIB === 0 ? `${bytes / KIB} KiB` : `${bytes} bytes`;
}
