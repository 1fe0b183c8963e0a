// What a story is: a sentence about what a person can do, played on a page of its own.
import type { Page } from "playwright-core";
import type { Stage } from "./stage.ts";

/** `expected`: what the browser complains of because the story brings it about. */
export type Story = { name: string; play(stage: Stage, page: Page): Promise<void>; expected?: RegExp };

/** Messages that a story brings about on purpose: a declined request. */
const DECLINED = /status of 4(?:0[01349]|22|29)/;

/** What the browser complained of beside. */
export function unexpected(complaints: readonly string[], expected = DECLINED): string[] {
  return complaints.filter((text) => !expected.test(text));
}
