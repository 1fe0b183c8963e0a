// A mail's HTML for a frame. What keeps it in is the frame's sandbox (no scripts, no forms, no navigation of the page) and the policy
// that the server gives the frame's document. What that policy would block is taken out before, so that a report of the browser means
// something; safety does not rest on that.

const ACTIVE = "script,link,meta,base,iframe,frame,object,embed,svg,math,audio,video,source,portal,template,noscript";
const FETCHING = ["src", "srcset", "background", "poster", "data", "action", "formaction", "ping", "xlink:href"];
const PICTURES = new Set(["src", "background"]);
const ELSEWHERE = /^https?:/i;

export type Quiet = { html: string; hasRemotePictures: boolean };

/** Parsed in a document that runs nothing and fetches nothing. `withPictures` leaves the addresses of pictures. */
export function quieten(html: string, withPictures: boolean): Quiet {
  const { body, head } = new DOMParser().parseFromString(html, "text/html");
  const styles = [...head.querySelectorAll("style")].map(({ outerHTML }) => outerHTML).join("");
  body.insertAdjacentHTML("afterbegin", styles);
  for (const element of body.querySelectorAll(ACTIVE)) element.remove();
  let hasRemotePictures = false;
  for (const element of body.querySelectorAll("*")) {
    if (ELSEWHERE.test(element.getAttribute("src") ?? "")) hasRemotePictures = true;
    strip(element, withPictures);
  }
  for (const style of body.querySelectorAll("style")) style.textContent = withoutUrls(style.textContent);
  return { html: body.innerHTML, hasRemotePictures };
}

function strip(element: Element, withPictures: boolean): void {
  for (const { name, value } of [...element.attributes]) {
    const isCarried = value.trim().toLowerCase().startsWith("data:image/");
    const isAsked = withPictures && PICTURES.has(name) && ELSEWHERE.test(value);
    if ((FETCHING.includes(name) && !isCarried && !isAsked) || name.startsWith("on")) element.removeAttribute(name);
    if (name === "style") element.setAttribute(name, withoutUrls(value));
  }
}

function withoutUrls(css: string): string {
  return css.replace(/@import[^;]*;?/gi, "").replace(/(?:url|image-set|src)\s*\([^)]*\)/gi, "none");
}
