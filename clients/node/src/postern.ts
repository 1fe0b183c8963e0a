// The library's face: `new Postern()` has a group of methods for each kind of record (generated/resources.ts), one way to
// ask for anything else, and what is thrown and returned.
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import type { SendAttachment } from "./generated/models.ts";
import { bindResources, type Resources } from "./generated/resources.ts";
import {
  type Call,
  type ClientOptions,
  createTransport,
  type RequestOptions,
  type Timing,
  type Transport,
} from "./transport.ts";

export * from "./errors.ts";
export type * from "./generated/models.ts";
export type { Resources } from "./generated/resources.ts";
export type { Page, PagePromise } from "./pages.ts";
export { type ClientOptions, type RequestOptions, responseOf, VERSION } from "./transport.ts";
export { SIGNATURE_HEADER, sign, verify } from "./webhooks.ts";

export interface Postern extends Resources {}

/** A client. Keep one for the whole program; it holds no state but its settings. */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the methods are bound in the constructor from the generated table
export class Postern {
  readonly #transport: Transport;

  /** `postern` takes a key, or settings; what is not given comes from `POSTERN_API_KEY` and `POSTERN_BASE_URL`. */
  constructor(given: string | ClientOptions = {}, timing?: Timing) {
    const options = typeof given === "string" ? { apiKey: given } : given;
    this.#transport = createTransport(options, timing);
    Object.assign(this, bindResources(this.#transport));
  }

  /** Any operation, also one that this version does not know: `postern.request("GET", "/v1/new-thing", { query })`. */
  request<T = unknown>(
    method: string,
    path: string,
    { query, json, ...options }: RequestOptions & { query?: object; json?: unknown } = {},
  ): Promise<T> {
    const call: Call = {
      method: method.toUpperCase(),
      path,
      answer: "json",
      idempotent: options.idempotencyKey !== undefined,
    };
    if (query) call.query = query;
    if (json !== undefined) call.body = { json };
    return this.#transport.request(call, options) as Promise<T>;
  }
}

/** An attachment for `emails.send` from a file on the disk. */
export async function attachmentFromFile(
  path: string,
  options: Partial<Omit<SendAttachment, "content">> = {},
): Promise<SendAttachment> {
  const content = await readFile(path, "base64");
  return { filename: basename(path), ...options, content } as SendAttachment;
}
