// What can be found out about a message, each once and only when somebody asks: verdicts on its sender, and its parts,
// read in a bounded worker. In session and in processing it is the same examination, so nothing is done twice.
import { authenticate, type Verdicts } from "../mail/auth/authenticate.ts";
import type { ParsePool } from "../platform/parse-pool.ts";
import { nodeStyleResolver } from "../platform/resolver.ts";
import type { World } from "../platform/world.ts";
import type { Envelope, Examination, Origin, Parsed, Returned } from "./types.ts";

export type ExaminationWorld = Pick<World, "resolver" | "clock" | "config">;

/** A simulated mail without a client is judged as if it came from an address that nobody may send from (RFC 5737). */
const NOBODY = "192.0.2.1";

export type Examined = Examination & {
  /** Lets go of the bytes; who asks for them later waits until they are loaded. */
  forget(load: Load): void;
};

export type Load = () => Promise<Buffer>;

/** An examination of one message: of bytes that are here, kept until `forget`, or that are loaded when needed. */
export function createExamination(
  world: ExaminationWorld,
  parser: ParsePool,
  about: { origin: Origin; envelope: Envelope },
  source: Buffer | Load,
): Examined {
  let held = Buffer.isBuffer(source) ? source : null;
  let load: Load | null = Buffer.isBuffer(source) ? null : source;
  let loading: Promise<Buffer> | null = null;
  let verdicts: Promise<Verdicts> | null = null;
  let parsed: Promise<Parsed> | null = null;
  let returned: Promise<Returned> | null = null;

  const bytes = (): Promise<Buffer> => {
    if (held) return Promise.resolve(held);
    loading ??= load?.() ?? Promise.reject(new Error("the bytes of a message are gone"));
    return loading;
  };
  return {
    bytes,
    verdicts() {
      verdicts ??= bytes().then((message) =>
        authenticate({
          bytes: message,
          remote_ip: about.origin.remote_ip ?? NOBODY,
          helo: about.origin.helo,
          mail_from: about.envelope.from,
          host: world.config.mx_host,
          resolver: nodeStyleResolver(world.resolver) as never,
          now_ms: world.clock.now(),
        }),
      );
      return verdicts;
    },
    parsed() {
      parsed ??= bytes().then((message) => parser.parse(message));
      return parsed;
    },
    returned() {
      returned ??= bytes().then((message) => parser.readReturned(message));
      return returned;
    },
    reply: async (order) => parser.buildReply(await bytes(), order),
    forget(from) {
      held = null;
      loading = null;
      load = from;
    },
  };
}
