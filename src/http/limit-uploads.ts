// How many uploads a process reads at once, as a hook of the HTTP server before the body.
import type { FastifyReply, FastifyRequest } from "fastify";
import { createFairPlaces, type FairLimits } from "../platform/fair/fair-gate.ts";
import { Refusal } from "../platform/refusal.ts";

/**
 * A place is held from before the body is read to the end of the answer, whichever way it ends: how fast a body comes is its
 * sender's choice, so an organization's slow ones keep nobody else's waiting. Who waits is not read from: the sender is held
 * back by TCP, and costs no memory. Who may not even wait gets 503 with this sentence.
 */
export function limitUploads(limits: FairLimits, sentence: string, retryS: number) {
  const places = createFairPlaces(limits);
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const gone = new AbortController();
    const leaving = gone.signal;
    reply.raw.once("close", () => gone.abort());
    reply.raw.once("finish", () => gone.abort());
    // Who left while the key was looked up has closed already: nobody would give the place back.
    if (reply.raw.destroyed) gone.abort();
    const leave = await places.enter(request.account.org_id, leaving);
    if (leave === null) throw new Refusal("unavailable", sentence, { retry_after_seconds: retryS });
    if (leaving.aborted) leave();
    else leaving.addEventListener("abort", leave, { once: true });
  };
}
