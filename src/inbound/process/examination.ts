// What can be found out about a message, each once and only when somebody asks: verdicts on its sender, and its parts,
// read in a bounded worker. In session and in processing it is the same examination, so nothing is done twice.
import { authenticate } from "../../mail/auth/authenticate.ts";
import { isToEncrypt, writeForwards } from "../../masked/rewrite/write-forwards.ts";
import type { ParsePool } from "../../parsing/parse-pool.ts";
import { resolverFor } from "../../platform/dns/resolver.ts";
import type { World } from "../../platform/world.ts";
import type { Envelope, Examination, Origin, Parsed, Returned, SenderVerdicts } from "../types.ts";

export type ExaminationWorld = Pick<World, "resolver" | "clock" | "config">;

/** `verdicts`: those that are known from before; null: to be found when somebody asks. */
export type Examinable = {
  origin: Origin;
  envelope: Envelope;
  received_at: Date;
  verdicts: SenderVerdicts | null;
};

/** A simulated mail without a client is judged as if it came from an address that nobody may send from (RFC 5737). */
const NOBODY = "192.0.2.1";
/** Strangers' name servers choose how long a question about their mail takes: mail that leaves has a share of its own. */
const ASKED_FOR = "received mail";
/** Within this, who asks now finds what was found at receipt. */
const FRESH_MS = 600_000;

/** The trip to a worker costs more than writing forwards of so little; all else would hold up everybody. */
const HERE_OCTETS_MAX = 6_000;

export type Examined = Examination & {
  /** Lets go of the bytes; who asks for them later waits until they are loaded. */
  forget(load: Load): void;
};

export type Load = () => Promise<Buffer>;

/** An examination of one message: of bytes that are here, kept until `forget`, or that are loaded when needed. */
export function createExamination(
  world: ExaminationWorld,
  parser: ParsePool,
  about: Examinable,
  source: Buffer | Load,
): Examined {
  let held = Buffer.isBuffer(source) ? source : null;
  let load: Load | null = Buffer.isBuffer(source) ? null : source;
  let loading: Promise<Buffer> | null = null;
  let verdicts = about.verdicts === null ? null : Promise.resolve(about.verdicts);
  const receivedMs = about.received_at.getTime();
  let parsed: Promise<Parsed> | null = null;
  let returned: Promise<Returned> | null = null;

  const bytes = (): Promise<Buffer> => {
    if (held) return Promise.resolve(held);
    loading ??= load?.() ?? Promise.reject(new Error("the bytes of a message are gone"));
    return loading;
  };
  const judge = async (now_ms: number): Promise<SenderVerdicts> =>
    authenticate({
      bytes: await bytes(),
      remote_ip: about.origin.remote_ip ?? NOBODY,
      helo: about.origin.helo,
      mail_from: about.envelope.from,
      host: world.config.mx_host,
      resolver: resolverFor(world.resolver, ASKED_FOR),
      now_ms,
    });
  const asReceived = (): Promise<SenderVerdicts> => {
    verdicts ??= judge(receivedMs);
    return verdicts;
  };
  return {
    host: world.config.mx_host,
    bytes,
    verdicts: asReceived,
    verdictsNow() {
      const nowMs = world.clock.now();
      return about.verdicts === null && nowMs - receivedMs < FRESH_MS ? asReceived() : judge(nowMs);
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
    async forwards(order) {
      const message = await bytes();
      const isHere = message.length <= HERE_OCTETS_MAX && !isToEncrypt(order);
      return isHere ? writeForwards(message, order) : parser.writeForwards(message, order);
    },
    forget(from) {
      held = null;
      loading = null;
      load = from;
    },
  };
}
