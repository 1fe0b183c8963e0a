// The DNS questions of one message, asked at most once each, with a limit on their number and on the time for all of
// them. Turns the errors of a node:dns style resolver into values. Limits of SPF's own are in spf.ts; no cache between
// messages here: that is the resolver's.

/** `(name, type)` in the shapes and with the error codes of node:dns/promises `resolve`. */
export type NodeResolver = (name: string, rrtype: string) => Promise<unknown[]>;

export type MxRecord = { exchange: string; priority: number };

/** `exists`: the name is there, only without records of the type asked for. */
export type Answer<T> =
  | { kind: "found"; records: T[] }
  | { kind: "absent"; exists: boolean }
  | { kind: "failed"; reason: string };

export type LookUps = {
  /** Each record as one text, its character strings joined. */
  txt(name: string): Promise<Answer<string>>;
  addresses(name: string, family: "A" | "AAAA"): Promise<Answer<string>>;
  mx(name: string): Promise<Answer<MxRecord>>;
  /** By the reverse name (`…in-addr.arpa`, `…ip6.arpa`). */
  ptr(reverseName: string): Promise<Answer<string>>;
  cname(name: string): Promise<Answer<string>>;
  /** Releases the timer; a question after this still gets an answer. */
  end(): void;
};

export type LookUpLimits = { look_ups_max: number; time_ms: number };

// RFC 7208 §4.6.4 lets SPF ask about 110 questions; ten signatures, fifty seals and the walks of DMARC come on top.
const defaultLimits: LookUpLimits = { look_ups_max: 300, time_ms: 20_000 };

const recordsMax = 256;
const absentCodes = new Set(["ENOTFOUND", "ENODATA", "EBADNAME"]);

/** Opens the look-ups of one message. Every question ends as a value; a resolver that fails without a code is a bug. */
export function createLookUps(resolver: NodeResolver, limits: LookUpLimits = defaultLimits): LookUps {
  const asked = new Map<string, Promise<Answer<unknown>>>();
  let timer: NodeJS.Timeout | undefined;
  const outOfTime = new Promise<Answer<never>>((resolve) => {
    timer = setTimeout(() => resolve({ kind: "failed", reason: "timeout" }), limits.time_ms);
  });
  const ask = <T>(name: string, rrtype: string): Promise<Answer<T>> => {
    const key = `${rrtype} ${name.toLowerCase()}`;
    const known = asked.get(key);
    if (known) return known as Promise<Answer<T>>;
    if (asked.size >= limits.look_ups_max) return Promise.resolve({ kind: "failed", reason: "too many look-ups" });
    const answer = Promise.race([askOnce<T>(resolver, name, rrtype), outOfTime]);
    asked.set(key, answer);
    return answer;
  };
  return {
    txt: async (name) => joined(await ask<unknown>(name, "TXT")),
    addresses: (name, family) => ask<string>(name, family),
    mx: (name) => ask<MxRecord>(name, "MX"),
    ptr: (reverseName) => ask<string>(reverseName, "PTR"),
    cname: (name) => ask<string>(name, "CNAME"),
    end: () => clearTimeout(timer),
  };
}

async function askOnce<T>(resolver: NodeResolver, name: string, rrtype: string): Promise<Answer<T>> {
  try {
    const records = (await resolver(name, rrtype)) as T[];
    if (records.length === 0) return { kind: "absent", exists: true };
    return { kind: "found", records: records.slice(0, recordsMax) };
  } catch (error) {
    const code = (error as { code?: unknown } | null)?.code;
    if (typeof code !== "string" || !code.startsWith("E")) throw error;
    if (absentCodes.has(code)) return { kind: "absent", exists: code === "ENODATA" };
    return { kind: "failed", reason: code.slice(1).toLowerCase() };
  }
}

function joined(answer: Answer<unknown>): Answer<string> {
  if (answer.kind !== "found") return answer;
  return {
    kind: "found",
    records: answer.records.map((record) => (Array.isArray(record) ? record.join("") : String(record))),
  };
}
