// Whether a request that claims to come from Postern was signed with a secret, as X-Service-Signature or as Standard Webhooks have it.
// It is reckoned in the browser: the secret goes nowhere.

export type Checked = { isRight: boolean; reason: string; at: string | null };
type Given = { secret: string; signature: string; id: string; timestamp: string; body: string };

/** `signature`: `t=…,v1=…`, or `v1,…` of Standard Webhooks with its id and timestamp. */
export async function checkSignature(given: Given): Promise<Checked> {
  const signature = given.signature.trim().replace(/^(?:x-service-signature|webhook-signature):\s*/i, "");
  if (/^t=\d+/.test(signature)) return checkOwn({ ...given, signature });
  if (/^v1,/.test(signature)) return checkStandard({ ...given, signature });
  return { isRight: false, reason: "The signature has the form t=…,v1=… or v1,….", at: null };
}

async function checkOwn({ secret, signature, body }: Given): Promise<Checked> {
  const parts = signature.split(",").map((part) => part.trim().split("="));
  const seconds = parts.find(([name]) => name === "t")?.[1] ?? "";
  const found = parts.filter(([name]) => name === "v1").map(([, value]) => value);
  const wanted = await hmac(new TextEncoder().encode(secret.trim()), `${seconds}.${body}`);
  const hex = [...wanted].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return judged(found.includes(hex), Number(seconds));
}

async function checkStandard({ secret, signature, id, timestamp, body }: Given): Promise<Checked> {
  if (id.trim() === "" || timestamp.trim() === "")
    return { isRight: false, reason: "This form needs webhook-id and webhook-timestamp as well.", at: null };
  const wanted = await hmac(keyOf(secret.trim()), `${id.trim()}.${timestamp.trim()}.${body}`);
  const base64 = btoa(String.fromCharCode(...wanted));
  return judged(signature.split(/\s+/).includes(`v1,${base64}`), Number(timestamp));
}

/** What stands behind `whsec_`, decoded. */
function keyOf(secret: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(secret.replace(/^whsec_/, "")), (letter) => letter.charCodeAt(0));
  } catch {
    return new TextEncoder().encode(secret);
  }
}

async function hmac(key: Uint8Array<ArrayBuffer>, text: string): Promise<Uint8Array> {
  const imported = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, new TextEncoder().encode(text)));
}

function judged(isRight: boolean, seconds: number): Checked {
  const at = Number.isFinite(seconds) && seconds > 0 ? new Date(seconds * 1000).toISOString() : null;
  const wrong =
    "Another secret, or a body that is not byte for byte what was posted: parsed and written again, or with another line end.";
  return { isRight, reason: isRight ? "The secret signed exactly this body." : wrong, at };
}
