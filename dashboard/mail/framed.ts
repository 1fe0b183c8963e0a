// A mail's HTML as the document of a frame. What keeps it in is the frame's sandbox (no scripts, no forms, no navigation of the
// page) and this document's own policy: nothing is fetched, only styles inside and pictures that the mail carries. What the policy would
// block is taken out before, so that a report of the browser means something; safety does not rest on that.

const POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'";

/** The policy stands before the first byte of the mail, so that nothing in it comes earlier. */
export function framed(html: string): string {
  return `<!doctype html><html><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${POLICY}"><meta name="referrer" content="no-referrer"><style>body{margin:16px;font-family:sans-serif;overflow-wrap:anywhere}a{pointer-events:none}</style></head><body>${withoutFetching(html)}</body></html>`;
}

const ACTIVE = "script,link,meta,base,iframe,frame,object,embed,svg,math,audio,video,source,portal,template,noscript";
const FETCHING = ["src", "srcset", "background", "poster", "data", "action", "formaction", "ping", "xlink:href"];

/** Parsed in a document that runs nothing and fetches nothing. */
function withoutFetching(html: string): string {
  const { body, head } = new DOMParser().parseFromString(html, "text/html");
  const styles = [...head.querySelectorAll("style")].map(({ outerHTML }) => outerHTML).join("");
  body.insertAdjacentHTML("afterbegin", styles);
  for (const element of body.querySelectorAll(ACTIVE)) element.remove();
  for (const element of body.querySelectorAll("*")) quieten(element);
  for (const style of body.querySelectorAll("style")) style.textContent = withoutUrls(style.textContent);
  return body.innerHTML;
}

function quieten(element: Element): void {
  for (const { name, value } of [...element.attributes]) {
    const isFetching = FETCHING.includes(name) && !value.trim().toLowerCase().startsWith("data:image/");
    if (isFetching || name.startsWith("on")) element.removeAttribute(name);
    if (name === "style") element.setAttribute(name, withoutUrls(value));
  }
}

function withoutUrls(css: string): string {
  return css.replace(/@import[^;]*;?/gi, "").replace(/(?:url|image-set|src)\s*\([^)]*\)/gi, "none");
}
