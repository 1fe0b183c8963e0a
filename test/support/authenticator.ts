// A device with passkeys, played: what WebAuthn's authenticators and browsers make (level 3, §5.8, §6.1, §6.5), without attestation.
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";

const PRESENT = 0x01;
const VERIFIED = 0x04;
const WITH_KEY = 0x40;

type Options = { challenge: string; rpId?: string; rp?: { id?: string } };
type Answer = Record<string, unknown>;
export type Authenticator = {
  /** Answers `options` as a browser does on a page of that origin. */
  make(options: object, origin: string): Answer;
  show(options: object, origin: string, as?: { verified?: boolean; counter?: number }): Answer;
};

/** One passkey; its counter goes up with each use unless a test says otherwise. */
export function authenticator(): Authenticator {
  const id = randomBytes(32);
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  let uses = 0;
  return {
    make(options, origin) {
      const { challenge, rp } = options as Options;
      const data = clientData("webauthn.create", challenge, origin);
      const length = Buffer.alloc(2);
      length.writeUInt16BE(id.length);
      const key = Buffer.concat([Buffer.alloc(16), length, id, coseOf(publicKey)]);
      const bytes = Buffer.concat([header(String(rp?.id), PRESENT | VERIFIED | WITH_KEY, 0), key]);
      const attestation = cbor(
        new Map<string, unknown>([
          ["fmt", "none"],
          ["attStmt", new Map()],
          ["authData", bytes],
        ]),
      );
      return wrapped(id, {
        clientDataJSON: plain(data),
        attestationObject: plain(attestation),
        transports: ["internal"],
      });
    },
    show(options, origin, { verified = true, counter } = {}) {
      const { challenge, rpId } = options as Options;
      uses += 1;
      const data = clientData("webauthn.get", challenge, origin);
      const bytes = header(String(rpId), verified ? PRESENT | VERIFIED : PRESENT, counter ?? uses);
      const digest = createHash("sha256").update(data).digest();
      const signature = sign("sha256", Buffer.concat([bytes, digest]), privateKey);
      return wrapped(id, {
        ...{ clientDataJSON: plain(data), authenticatorData: plain(bytes), signature: plain(signature) },
      });
    },
  };
}

function clientData(type: string, challenge: string, origin: string): Buffer {
  return Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }));
}

function header(rpId: string, flags: number, counter: number): Buffer {
  const rest = Buffer.alloc(5);
  rest.writeUInt8(flags, 0);
  rest.writeUInt32BE(counter, 1);
  return Buffer.concat([createHash("sha256").update(rpId).digest(), rest]);
}

/** RFC 9053 §7.1.1: an ES256 key. */
function coseOf(key: KeyObject): Buffer {
  const { x = "", y = "" } = key.export({ format: "jwk" });
  const coordinate = (text: string) => Buffer.from(text, "base64url");
  return cbor(
    new Map<number, unknown>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, coordinate(x)],
      [-3, coordinate(y)],
    ]),
  );
}

/** RFC 8949, as far as it is needed. */
function cbor(value: unknown): Buffer {
  if (typeof value === "number") return value < 0 ? head(1, -1 - value) : head(0, value);
  if (typeof value === "string") return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)]);
  if (Buffer.isBuffer(value)) return Buffer.concat([head(2, value.length), value]);
  const entries = [...(value as Map<unknown, unknown>)];
  return Buffer.concat([head(5, entries.length), ...entries.flatMap(([name, one]) => [cbor(name), cbor(one)])]);
}

function head(major: number, count: number): Buffer {
  if (count < 24) return Buffer.from([(major << 5) | count]);
  if (count < 256) return Buffer.from([(major << 5) | 24, count]);
  return Buffer.from([(major << 5) | 25, count >> 8, count & 255]);
}

function wrapped(id: Buffer, response: Record<string, unknown>): Answer {
  return { id: plain(id), rawId: plain(id), type: "public-key", clientExtensionResults: {}, response };
}

function plain(bytes: Buffer): string {
  return bytes.toString("base64url");
}
