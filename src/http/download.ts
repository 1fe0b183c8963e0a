// Headers under which content that strangers wrote leaves our origin: always as a download, never as a page
// (reliability rule 19; RFC 6266 for the name). What a browser would run is called octets.

const CHECKED_TYPE = /^[a-z0-9!#$&^_.+-]{1,100}\/[a-z0-9!#$&^_.+-]{1,100}$/;
// Words of a subtype, not parts of them: `vnd.openxmlformats-officedocument…` and `postscript` run nowhere.
const RUNNABLE =
  /^(?:multipart|message)\/|[/.+_-](?:x?html|xml|svg|xslt?|mathml|(?:java|ecma|j|live|vb)?script\d*|java|flash|www)(?:$|[.+_-])/;

/** `filename` is safe for folders already; here it is made safe for a header. */
export function downloadHeaders(filename: string, contentType: string): Record<string, string> {
  return {
    "content-type": safeType(contentType),
    "content-disposition": disposition(filename),
    "x-content-type-options": "nosniff",
    "content-security-policy": "sandbox; default-src 'none'",
    "cache-control": "private, max-age=0, no-store",
    "cross-origin-resource-policy": "same-origin",
  };
}

function safeType(contentType: string): string {
  const type = contentType.split(";")[0]?.trim().toLowerCase() ?? "";
  return CHECKED_TYPE.test(type) && !RUNNABLE.test(type) ? type : "application/octet-stream";
}

function disposition(filename: string): string {
  const ascii = filename.replace(/[^\x20-\x7e]|["\\%;]/g, "_");
  const encoded = encodeURIComponent(filename.toWellFormed()).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${ascii}"; filename*=UTF-8''${encoded}`;
}
