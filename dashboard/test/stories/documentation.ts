// Stories of the documentation at /docs, which the server renders by itself.
import assert from "node:assert/strict";
import type { Story } from "../story.ts";

const TELEPHONE = 360;
/** Less is a column of single words. */
const READABLE = 200;

/** Everything unfolded. */
const MEASURED = `(() => {
  for (const one of document.querySelectorAll("details")) one.open = true;
  const meanings = [...document.querySelectorAll(".operation > .wide > table > tbody > tr > td:last-child")];
  const widths = meanings.map((cell) => cell.getBoundingClientRect().width);
  return { width: document.documentElement.scrollWidth, narrowest: widths.length === 0 ? null : Math.min(...widths) };
})()`;

export const DOCUMENTATION_STORIES: readonly Story[] = [
  {
    name: "the documentation is read on a telephone: no page is wider than it, and what a field means has room",
    async play({ open }, _page) {
      const { page, close } = await open({ width: TELEPHONE, as: null });
      await page.goto("/docs");
      const paths = await page.evaluate<string[]>(
        '[...document.querySelectorAll("nav a")].map((link) => link.getAttribute("href"))',
      );
      assert.ok(paths.length > 20);
      for (const path of new Set(paths)) {
        await page.goto(path);
        const { width, narrowest } = await page.evaluate<{ width: number; narrowest: number | null }>(MEASURED);
        assert.ok(width <= TELEPHONE, `${path} is ${width} px wide`);
        assert.ok((narrowest ?? READABLE) >= READABLE, `${path} has a column of ${narrowest} px`);
      }
      await close();
    },
  },
];
