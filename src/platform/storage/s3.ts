// How an S3-compatible store is reached: path style, with limits for each request, and a few attempts. Not here: what is kept
// there (blobs.ts, ../../backup/store-s3.ts).
import { S3mini } from "s3mini";
import { sleep } from "../clock.ts";
import { isAbsent, reasonGiven, tellsAbsence } from "./s3-trouble.ts";

export type S3Options = { endpoint: string; region: string; bucket: string; access_key: string; secret_key: string };
/** A store without the one bucket. */
export type S3Access = Omit<S3Options, "bucket">;

/** So long for an answer without a body, and for a whole request with one. */
export type S3Limits = { answer_ms: number; request_ms: number };

/** Waits before the second and third try; PUT, GET, HEAD and DELETE of the same content may be repeated. */
const RETRY_MS = [100, 500];

/** What may stand in a path as one part of it and is a bucket's name with some store, old names and `tenant:name` among them. */
export function isBucketName(text: string): boolean {
  return /^[A-Za-z0-9][\w.:-]{0,254}$/.test(text);
}

/**
 * `endpoint` is the operator's own setting and may lie in a private network, so it does not pass the deny-table for addresses
 * that strangers give; redirects are refused.
 */
export function openS3(options: S3Options, limits: S3Limits): S3mini {
  return withFetch(options, (input, init) => {
    const hasBody = init?.method !== "HEAD" && init?.method !== "DELETE";
    const signal = AbortSignal.timeout(hasBody ? limits.request_ms : limits.answer_ms);
    return fetch(input, { ...init, redirect: "error", signal });
  });
}

/** The same for answers that are passed on: only their beginning has a limit. */
export function openS3ForPassing(options: S3Options, answerMs: number): S3mini {
  return withFetch(options, (input, init) => beginWithin(answerMs, input, init));
}

function withFetch(options: S3Options, fetchWithin: typeof fetch): S3mini {
  return new S3mini({
    accessKeyId: options.access_key,
    secretAccessKey: options.secret_key,
    endpoint: `${options.endpoint.replace(/\/+$/, "")}/${options.bucket}`,
    region: options.region,
    fetch: async (input, init) => ofStore(await fetchWithin(input, init), init?.method),
  });
}

/**
 * The same answer, where it is one that only a store gives. A web server in its place, such as a store's console or a proxy's
 * page, answers 200 and keeps nothing; and s3mini takes each 404 for an object that is not there.
 */
async function ofStore(answer: Response, method = "GET"): Promise<Response> {
  const isOther = method === "DELETE" ? answer.status === 200 && isPage(answer) : !answer.headers.has("etag");
  if (answer.ok && isOther && ["HEAD", "PUT", "DELETE"].includes(method)) {
    await answer.body?.cancel();
    throw new Error(`it answered ${answer.status} to ${method} as no S3 store does`);
  }
  if (answer.status !== 404 || method !== "GET") return answer;
  const body = await answer.text();
  if (!tellsAbsence(body)) throw Object.assign(new Error("it answered 404"), { status: 404, body });
  return new Response(body, { status: 404, headers: answer.headers });
}

function isPage(answer: Response): boolean {
  return answer.headers.get("content-type")?.startsWith("text/html") ?? false;
}

/** The bytes of an object; null when it is not there. HEAD's answer has no body: why it was refused, the answer to GET says. */
export async function objectSize(s3: S3mini, key: string): Promise<number | null> {
  try {
    return await repeated(() =>
      s3.getContentLength(key).catch((error) => {
        throw error.cause ?? error;
      }),
    );
  } catch (error) {
    if (isAbsent(error)) return null;
    if (!isRefused(error) || reasonGiven(error) !== null) throw error;
    const answer = await s3.getObjectRaw(key, false, 0, 1);
    await answer.body?.cancel();
    return Number(/\/(\d+)$/.exec(answer.headers.get("content-range") ?? "")?.[1] ?? 0);
  }
}

function isRefused(error: unknown): boolean {
  const { status } = error as { status?: number };
  return status !== undefined && status >= 400 && status < 500;
}

async function beginWithin(ms: number, ...[input, init]: Parameters<typeof fetch>): Promise<Response> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new DOMException("no answer in time", "TimeoutError")), ms);
  try {
    return await fetch(input, { ...init, redirect: "error", signal: late.signal });
  } finally {
    clearTimeout(timer);
  }
}

/** A store that does not answer at all is not asked again at once: somebody waits for us. */
export async function repeated<T>(attempt: () => Promise<T>): Promise<T> {
  for (const waitMs of RETRY_MS) {
    try {
      return await attempt();
    } catch (error) {
      const status = (error as { status?: number }).status ?? 500;
      if ((status < 500 && status !== 429 && status !== 408) || (error as Error).name === "TimeoutError") throw error;
      await sleep(waitMs);
    }
  }
  return attempt();
}
