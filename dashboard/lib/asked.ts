// What the server needs of the person before it goes on: signing in again, or showing the password again. Requests that meet it
// wait, and go on afterwards; what stands in a form stays there. routes/asked.tsx asks.
import { useSyncExternalStore } from "react";

export type Asked = "sign-in" | "proof";

let asked: Asked | null = null;
let isAnybodyIn = false;
let waiting: ((given: boolean) => void)[] = [];
const listeners = new Set<() => void>();

/** Only who was signed in is asked to sign in again. */
export function setAnybodyIn(isIn: boolean): void {
  isAnybodyIn = isIn;
}

/** True once it was given; false when the person would rather not, or there is nobody to ask. */
export function askPerson(what: Asked): Promise<boolean> {
  if (!isAnybodyIn) return Promise.resolve(false);
  // Who signs in again shows the password with it.
  set(asked === "sign-in" ? asked : what);
  return new Promise((settle) => waiting.push(settle));
}

/** Lets all that waits go on, or gives it up. */
export function answerAsked(given: boolean): void {
  const settled = waiting;
  waiting = [];
  set(null);
  for (const settle of settled) settle(given);
}

export function useAsked(): Asked | null {
  return useSyncExternalStore(subscribe, () => asked);
}

function set(next: Asked | null): void {
  asked = next;
  for (const tell of listeners) tell();
}

function subscribe(changed: () => void): () => void {
  listeners.add(changed);
  return () => listeners.delete(changed);
}
