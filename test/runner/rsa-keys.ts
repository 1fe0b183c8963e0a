// RSA keys for tests. To make one of 2048 bits takes 60 to 200 ms of a processor, and each domain of a test has one; so a
// run makes some, and each process hands them out in turn, from another one on. Not here: Postern as a process of its own,
// which makes its keys itself.
import crypto, { createPrivateKey, createPublicKey, generateKeyPair, randomInt } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";

/** Names the file of keys for the processes of a run. */
const KEYS_FILE = "POSTERN_TEST_RSA_KEYS";
const KEYS = 16;
const BITS = 2048;

type Done = (error: Error | null, publicKey: crypto.KeyObject, privateKey: crypto.KeyObject) => void;

/** Makes the keys in `folder`, for processes that are started from now on. */
export async function makeRsaKeys(folder: string): Promise<void> {
  const make = promisify(generateKeyPair);
  const pairs = await Promise.all(Array.from({ length: KEYS }, () => make("rsa", { modulusLength: BITS })));
  const keys = pairs.map(({ privateKey }) => privateKey.export({ type: "pkcs8", format: "pem" }));
  const path = join(folder, "rsa-keys.json");
  writeFileSync(path, JSON.stringify(keys));
  process.env[KEYS_FILE] = path;
}

/** From now on `generateKeyPair` of this process hands out the run's RSA keys; where there are none, nothing changes. */
export function handOutRsaKeys(): void {
  const path = process.env[KEYS_FILE];
  if (path === undefined) return;
  const keys: string[] = JSON.parse(readFileSync(path, "utf8"));
  let next = randomInt(keys.length);
  const make = crypto.generateKeyPair as (type: string, options: { modulusLength?: number }, done: Done) => void;
  const handOut = (type: string, options: { modulusLength?: number }, done: Done): void => {
    if (type !== "rsa" || options.modulusLength !== BITS) {
      make(type, options, done);
      return;
    }
    const privateKey = createPrivateKey(keys[next] as string);
    next = (next + 1) % keys.length;
    setImmediate(done, null, createPublicKey(privateKey), privateKey);
  };
  crypto.generateKeyPair = Object.assign(handOut, crypto.generateKeyPair) as typeof crypto.generateKeyPair;
  syncBuiltinESMExports();
}
