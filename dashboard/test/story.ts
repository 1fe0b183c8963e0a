// What a story is: a sentence about what a person can do, played on a page of its own.
import type { Page } from "playwright-core";
import type { Stage } from "./stage.ts";

/** `expected`: what the browser complains of because the story brings it about. */
export type Story = { name: string; play(stage: Stage, page: Page): Promise<void>; expected?: RegExp };
