// Is another copy of this database sending? A process that sends notes in the database where its API is (POSTERN_BASE_URL), so a copy
// knows where the original was, and asks there: "which database do you have?". An answer counts that the same master key
// signed and that is about the same guard. Where it names the database asked from, it is a process beside this one; where it
// names another, two databases go under one identity. No answer says nothing. Only a copy finds anything: the original
// knows no address but its own.
import { Type } from "typebox";
import type { Api } from "../../http/http.ts";
import { isSame } from "../../mail/token-bytes.ts";
import { sleep } from "../../platform/clock.ts";
import { askOperatorUrl } from "../../platform/net/operator-fetch.ts";
import type { World } from "../../platform/world.ts";
import * as queries from "./guard-queries.ts";

const PATH = "/sending-witness";
const CONTEXT = "sending-witness";
const ASK_MS = 2_000;
/** The database may be restarting between our look and theirs. */
const TRIES = 3;
const AGAIN_MS = 1_000;

type Answering = Pick<World, "db" | "seal">;
type Asking = Answering & Pick<World, "random">;
type Instance = { id: string; instance: string };

/** Answers those that have the master key. */
export function mountWitness(api: Api, world: Answering): void {
  const schema = {
    hide: true,
    querystring: Type.Object({ nonce: Type.String({ maxLength: 64 }), proof: Type.String({ maxLength: 64 }) }),
  };
  api.get(PATH, { schema }, async (request, reply) => {
    const { nonce, proof } = request.query as { nonce: string; proof: string };
    const isKnown = isSame(Buffer.from(sign(world, ["ask", nonce])), Buffer.from(proof));
    const [own] = isKnown ? await queries.findInstance(world.db) : [];
    if (!own) return reply.code(404).send({ error: "there is nothing to see here" });
    return reply.send(answer(world, nonce, own));
  });
}

/** The address that answers for another database under this identity; null where none does. Without an answer null, too. */
export async function findOther(world: Asking, urls: string[], signal: AbortSignal): Promise<string | null> {
  const found = await Promise.all([...new Set(urls)].map((url) => isOther(world, url, signal)));
  return [...new Set(urls)].find((_url, at) => found[at]) ?? null;
}

async function isOther(world: Asking, url: string, signal: AbortSignal): Promise<boolean> {
  for (let times = 1; times <= TRIES; times += 1) {
    if (times > 1) await sleep(AGAIN_MS, signal);
    const nonce = world.random.uuid();
    const query = `nonce=${nonce}&proof=${sign(world, ["ask", nonce])}`;
    const reported = await askOperatorUrl(`${url}${PATH}?${query}`, ASK_MS, signal);
    const [own] = reported === null ? [] : await queries.findInstance(world.db);
    if (typeof reported !== "object" || reported === null || !own) return false;
    const expected = answer(world, nonce, own);
    const { identity, database } = reported as { identity?: unknown; database?: unknown };
    if (identity !== expected.identity || database === expected.database) return false;
  }
  return !signal.aborted;
}

function answer(world: Answering, nonce: string, { id, instance }: Instance) {
  return { identity: sign(world, ["identity", nonce, id]), database: sign(world, ["database", nonce, id, instance]) };
}

function sign({ seal }: Pick<World, "seal">, words: string[]): string {
  return seal.hash(JSON.stringify(words), CONTEXT).toString("base64url");
}
