// Pictures that nobody is to see: they tell their server that, when and from where a mail was read. They are taken out of the
// HTML of a forward, whatever their address holds, before anything else reads it.
import { markupIn } from "./scrub/html-markup.ts";

const PICTURE = /^<img[\s/]/i;
/** From a server, in any attribute that programs load it from. */
const REMOTE = /\bsrc(?:set)?\s*=\s*["']?\s*(?:https?:)?\/\//i;
const side = (name: string) =>
  new RegExp(`\\b${name}\\s*=\\s*(?:"\\s*[01](?:px)?\\s*"|'\\s*[01](?:px)?\\s*'|[01](?:px)?(?=[\\s/>]))`, "i");
const styled = (name: string) =>
  new RegExp(`[;"'\\s](?:max-)?${name}\\s*:\\s*[01](?:px)?\\s*(?:!important\\s*)?[;"']`, "i");
const [WIDTH, HEIGHT] = [side("width"), side("height")];
const [STYLED_WIDTH, STYLED_HEIGHT] = [styled("width"), styled("height")];
const HIDDEN =
  /[;"'\s](?:display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*0(?:\.0+)?)\s*(?:!important\s*)?[;"']/i;

/** The HTML without them. */
export function cutTrackingPixels(html: string): string {
  if (!/<img[\s/]/i.test(html)) return html;
  let out = "";
  let from = 0;
  for (const { start, end } of markupIn(html)) {
    if (!isPixel(html.slice(start, end))) continue;
    out += html.slice(from, start);
    from = end;
  }
  return out + html.slice(from);
}

function isPixel(tag: string): boolean {
  if (!PICTURE.test(tag) || !REMOTE.test(tag)) return false;
  const isFlat = WIDTH.test(tag) || STYLED_WIDTH.test(tag);
  const isLow = HEIGHT.test(tag) || STYLED_HEIGHT.test(tag);
  return (isFlat && isLow) || HIDDEN.test(tag);
}
