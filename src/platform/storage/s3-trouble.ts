// What an S3-compatible store said when it failed, with its code: `NoSuchBucket`, `AccessDenied`, `SlowDown`, or the system's
// where nothing answered (`ECONNREFUSED`). The client library knows the code only of answers whose Content-Type is exactly
// application/xml, and of four of the system's.

type Thrown = { name?: string; message?: string; status?: number; serviceCode?: string; body?: string; code?: unknown };

const MESSAGE_LENGTH_MAX = 200;
const CAUSES_MAX = 4;

/** The store's own reason for refusing; null when it gave none, as to HEAD, whose answer has no body. */
export function reasonGiven(error: unknown): string | null {
  const { serviceCode, body = "" } = error as Thrown;
  if (serviceCode !== undefined && serviceCode !== "Unknown") return serviceCode;
  return elementOf(body, "Code");
}

/** The same failure as an error with `code` and a sentence. */
export function describeTrouble(error: unknown): Error & { code?: string } {
  const { status, body = "", name, message } = error as Thrown;
  if (status === undefined) {
    const code = name === "TimeoutError" ? name : systemCode(error);
    const says = name === "TimeoutError" ? "no answer in time" : (message ?? "it failed");
    const known = code === undefined || says.includes(code) ? says : `${says} (${code})`;
    return Object.assign(new Error(known, { cause: error }), code === undefined ? {} : { code });
  }
  const code = reasonGiven(error) ?? undefined;
  const says = elementOf(body, "Message");
  const sentence = `it answered ${status}${code === undefined ? "" : ` ${code}`}${says === null ? "" : `: ${says}`}`;
  return Object.assign(new Error(sentence, { cause: error }), code === undefined ? {} : { code });
}

function elementOf(body: string, name: "Code" | "Message"): string | null {
  const text = new RegExp(`<${name}>([^<]{1,1000})</${name}>`).exec(body)?.[1]?.replace(/\p{Cc}/gu, " ");
  return text?.trim().slice(0, MESSAGE_LENGTH_MAX) || null;
}

/** `fetch failed` has the system's error as its cause, or several of them where a name has several addresses. */
function systemCode(error: unknown): string | undefined {
  let found = error as { code?: unknown; cause?: unknown; errors?: unknown[] } | undefined;
  for (let depth = 0; depth < CAUSES_MAX && typeof found === "object" && found !== null; depth += 1) {
    if (typeof found.code === "string") return found.code;
    found = (found.cause ?? found.errors?.[0]) as typeof found;
  }
  return undefined;
}
