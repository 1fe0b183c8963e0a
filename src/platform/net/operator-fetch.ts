// A short question to an address that the operator set (POSTERN_BASE_URL, the cells of a door): it may be a private one, so it does not go through
// the wall around addresses that strangers name (safe-fetch.ts).

const ANSWER_BYTES_MAX = 1_000;

/** The JSON that answers there; null where nobody does in time, or not in so few words. Follows no redirect. */
export async function askOperatorUrl(url: string, timeoutMs: number, signal?: AbortSignal): Promise<unknown> {
  try {
    const late = AbortSignal.any([...(signal ? [signal] : []), AbortSignal.timeout(timeoutMs)]);
    const response = await fetch(url, { redirect: "error", signal: late });
    return response.ok ? JSON.parse(await readShort(response)) : null;
  } catch {
    return null; // nobody there, or somebody else
  }
}

async function readShort({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > ANSWER_BYTES_MAX) throw new Error("an answer too long to be ours");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
