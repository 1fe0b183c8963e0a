// The transport of ACME (RFC 8555 §6): signed requests with nonces, and answers that say no as AcmeProblem. ES256 alone. Why
// this is our own: docs/decisions/0034-acme.md. Not here: what is asked for (order.ts).
import { createHash, createPublicKey, type KeyObject, sign } from "node:crypto";
import { readFileSync } from "node:fs";
import { rootCertificates } from "node:tls";
import type { Agent, Dispatcher, request } from "undici";
import { AcmeProblem, problemOf } from "./problems.ts";

// biome-ignore lint/suspicious/noExplicitAny: JSON of the ACME server; what is used of it is checked where it is used
export type Answer = { body: any; location: string | null };

export type Acme = {
  /** The URL of a resource of the directory, such as `newOrder` (§7.1.1). */
  resource(name: string): Promise<string>;
  /** A signed request; without a payload it reads (POST-as-GET, §6.3). */
  post(url: string, payload?: object): Promise<Answer>;
  /** What proves that the holder of the account's key answers for a token (§8.1). */
  keyAuthorization(token: string): string;
  /** The account's URL, by which requests are signed once it is known. */
  account: string | null;
  close(): Promise<void>;
};

const ANSWER_MS = 30_000;
const ANSWER_BYTES_MAX = 1_048_576;
const NONCE_TRIES = 8;

/** `key`: the account's, P-256. `ca_file`: of an authority of one's own. */
export function openAcme(directory: string, { key, ca_file }: { key: KeyObject; ca_file: string | null }): Acme {
  const ca = ca_file === null ? {} : { ca: [...rootCertificates, readFileSync(ca_file, "utf8")] };
  const times = { headersTimeout: ANSWER_MS, bodyTimeout: ANSWER_MS, connect: { timeout: ANSWER_MS, ...ca } };
  let agent: Agent | null = null;
  const jwk = publicJwk(key);
  let resources: Record<string, unknown> | null = null;
  let nonce: string | null = null;

  async function ask(method: "GET" | "HEAD" | "POST", url: string, body?: string): Promise<Raw> {
    // With the first request: it takes some 20 MiB.
    const undici = await import("undici");
    agent ??= new undici.Agent(times);
    const raw = await exchange({ request: undici.request, dispatcher: agent, method, url, body });
    nonce = raw.nonce ?? nonce;
    return raw;
  }

  async function takeNonce(): Promise<string> {
    if (nonce === null) await ask("HEAD", await acme.resource("newNonce"));
    const taken = nonce;
    nonce = null;
    if (taken === null) throw new Error("the ACME server gives no nonce (RFC 8555 §7.2)");
    return taken;
  }

  const acme: Acme = {
    account: null,
    async resource(name) {
      resources ??= (await ask("GET", directory)).body as Record<string, unknown>;
      const url = typeof resources === "object" && resources !== null ? resources[name] : undefined;
      if (typeof url !== "string")
        throw new Error(`${directory} is not the directory of an ACME server: it has no ${name}`);
      return url;
    },
    async post(url, payload) {
      for (let times = 1; ; times += 1) {
        const who = acme.account === null ? { jwk } : { kid: acme.account };
        const head = { alg: "ES256", ...who, nonce: await takeNonce(), url };
        try {
          return await ask("POST", url, signed(key, head, payload));
        } catch (error) {
          // §6.5: the answer brings a nonce that is good.
          if (!(error instanceof AcmeProblem) || error.type !== "badNonce" || times >= NONCE_TRIES) throw error;
          nonce = error.nonce;
        }
      }
    },
    // RFC 7638: the members in this order.
    keyAuthorization: (token) => `${token}.${createHash("sha256").update(JSON.stringify(jwk)).digest("base64url")}`,
    close: async () => agent?.close(),
  };
  return acme;
}

type Jwk = { crv: string; kty: string; x: string; y: string };

function publicJwk(key: KeyObject): Jwk {
  const { crv, kty, x, y } = createPublicKey(key).export({ format: "jwk" }) as Jwk;
  return { crv, kty, x, y };
}

/** A JSON Web Signature (RFC 7515 §7.2.2). */
function signed(key: KeyObject, head: object, payload: object | undefined): string {
  const protectedHead = encode(JSON.stringify(head));
  const content = payload === undefined ? "" : encode(JSON.stringify(payload));
  const bytes = Buffer.from(`${protectedHead}.${content}`);
  const signature = sign("sha256", bytes, { key, dsaEncoding: "ieee-p1363" }).toString("base64url");
  return JSON.stringify({ protected: protectedHead, payload: content, signature });
}

function encode(text: string): string {
  return Buffer.from(text).toString("base64url");
}

type Raw = Answer & { nonce: string | null };
type Exchange = {
  request: typeof request;
  dispatcher: Dispatcher;
  method: "GET" | "HEAD" | "POST";
  url: string;
  body: string | undefined;
};

async function exchange({ request, dispatcher, method, url, body }: Exchange): Promise<Raw> {
  const headers = { "content-type": "application/jose+json", "user-agent": "postern" };
  const { answer, text } = await reach(async () => {
    const given = await request(url, { dispatcher, method, headers, ...(body === undefined ? {} : { body }) });
    return { answer: given, text: await readBounded(given.body) };
  });
  const header = (name: string): string | null => {
    const value = answer.headers[name];
    return value === undefined ? null : String(value);
  };
  const content = /json/.test(header("content-type") ?? "") ? parse(text) : text;
  const nonce = header("replay-nonce");
  const problem = problemOf(answer.statusCode, content, {
    retry_after: header("retry-after"),
    date: header("date"),
    nonce,
  });
  if (problem) throw problem;
  return { body: content, location: header("location"), nonce };
}

async function reach<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    const { code, message } = cause as Error & { code?: string };
    throw new Error(`the ACME server cannot be reached (${code ?? message})`, { cause });
  }
}

async function readBounded(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > ANSWER_BYTES_MAX) throw new Error(`an answer of more than ${ANSWER_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
