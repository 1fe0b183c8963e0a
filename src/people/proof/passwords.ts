// Passwords: argon2id (RFC 9106) in its PHC form, and which ones are refused. Not here: how often one may be tried
// (tries.ts).
import { argon2, timingSafeEqual } from "node:crypto";
import { createFairPlaces } from "../../platform/fair/fair-gate.ts";
import { invalid, Refusal } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import common from "./common-passwords.json" with { type: "json" };

/** OWASP's first choice for argon2id: 19 MiB, two passes, one lane; about 60 ms of a processor here. */
const COST = { memory: 19_456, passes: 2, parallelism: 1 } as const;
const SALT_BYTES = 16;
const TAG_BYTES = 32;
/** Each takes its 19 MiB and a thread of Node's pool, which files and DNS need as well. */
const AT_ONCE = 2;
const WAITING_MAX = 50;
const WAIT_MS = 10_000;

const LENGTH_MIN = 10;
const BYTES_MAX = 1_024;
const COMMON = new Set(common);

const PHC = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

const places = createFairPlaces({ places: AT_ONCE, waiting_max: WAITING_MAX });

/** The form in which it is stored. 503 while too many passwords wait to be looked at. */
export async function hashPassword({ random }: Pick<World, "random">, text: string): Promise<string> {
  const salt = random.bytes(SALT_BYTES);
  const tag = await digest(text, { ...COST, salt, length: TAG_BYTES });
  return `$argon2id$v=19$m=${COST.memory},t=${COST.passes},p=${COST.parallelism}$${plain(salt)}$${plain(tag)}`;
}

/** True if the text is the stored password. Where nothing is stored the answer is false, and takes as long. */
export async function isPassword(text: string, stored: string | null): Promise<boolean> {
  const [, memory, passes, parallelism, salt = "", tag = ""] = PHC.exec(stored ?? "") ?? [];
  const wanted = Buffer.from(tag, "base64");
  const given = await digest(text, {
    memory: Number(memory ?? COST.memory),
    passes: Number(passes ?? COST.passes),
    parallelism: Number(parallelism ?? COST.parallelism),
    salt: memory === undefined ? Buffer.alloc(SALT_BYTES) : Buffer.from(salt, "base64"),
    length: wanted.length || TAG_BYTES,
  });
  return memory !== undefined && timingSafeEqual(given, wanted);
}

/** 400 for a password that is short, well known, or the person's own address. */
export function judgePassword(field: string, text: string, email: string): void {
  const length = [...text].length;
  if (length < LENGTH_MIN) throw invalid(field, `the '${field}' field must have at least ${LENGTH_MIN} characters`);
  if (Buffer.byteLength(text) > BYTES_MAX) throw invalid(field, `the '${field}' field has at most ${BYTES_MAX} bytes`);
  if (isCommon(text))
    throw invalid(field, `the '${field}' field holds a password that many people use: choose another one`);
  if (text.toLowerCase() === email) throw invalid(field, `the '${field}' field must not be the e-mail address`);
}

/** Also one character said over and over, which lists leave out. */
function isCommon(text: string): boolean {
  const lower = text.toLowerCase();
  return COMMON.has(lower) || new Set(lower).size < 4;
}

type Terms = { memory: number; passes: number; parallelism: number; salt: Buffer; length: number };

async function digest(text: string, { salt, length, ...cost }: Terms): Promise<Buffer> {
  const leave = places.enterNow("") ?? (await places.enter("", AbortSignal.timeout(WAIT_MS)));
  if (leave === null) throw new Refusal("unavailable", "too many people sign in at the moment; try again shortly");
  // One password however a keyboard composes its letters (RFC 8265 §4.2).
  const message = Buffer.from(text.normalize("NFC"));
  try {
    return await new Promise<Buffer>((done, fail) =>
      argon2("argon2id", { message, nonce: salt, tagLength: length, ...cost }, (error, tag) =>
        error ? fail(error) : done(tag),
      ),
    );
  } finally {
    leave();
  }
}

/** PHC strings have base64 without padding. */
function plain(bytes: Buffer): string {
  return bytes.toString("base64").replace(/=+$/, "");
}
