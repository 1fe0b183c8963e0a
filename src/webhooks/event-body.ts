// The body of an event: what is signed and sent, and what readers of events get.
import type { OutgoingEvent } from "./types.ts";

/** The bytes that are sent, stored once: JSON with well-formed Unicode, the contract's common fields first. */
export function bodyOf(event: Pick<OutgoingEvent, "event" | "event_id" | "at" | "payload">): Buffer {
  const { event: name, event_id, at, payload } = event;
  return Buffer.from(JSON.stringify({ event: name, timestamp: at.toISOString(), event_id, ...payload }), "utf8");
}
