// The DNS questions of one message, asked at most once each, with a limit on their number and on the time for all of
// them. Limits of SPF's own are in spf.ts; no cache between messages here: that is the resolver's.

export type MxRecord = { exchange: string; preference: number };

/** `nodata`: the name is there, only without records of the type asked for. */
export type Answer<T> =
  | { kind: "found"; records: T[] }
  | { kind: "absent"; reason: "nxdomain" | "nodata" }
  | { kind: "failed"; reason: string };

/** Who is asked: platform/dns/resolver.ts. A bounded number of records; what goes wrong is a value. */
export type DnsResolver = {
  /** Each record as one text, its character strings joined. */
  txt(name: string): Promise<Answer<string>>;
  a(name: string): Promise<Answer<string>>;
  aaaa(name: string): Promise<Answer<string>>;
  mx(name: string): Promise<Answer<MxRecord>>;
  /** The names of an address. */
  ptr(ip: string): Promise<Answer<string>>;
  cname(name: string): Promise<Answer<string>>;
};

export type LookUps = DnsResolver & {
  /** Releases the timer; a question after this still gets an answer. */
  end(): void;
};

export type LookUpLimits = { look_ups_max: number; time_ms: number };

// RFC 7208 §4.6.4 lets SPF ask about 110 questions; ten signatures, fifty seals and the walks of DMARC come on top.
const defaultLimits: LookUpLimits = { look_ups_max: 300, time_ms: 20_000 };

/** Opens the look-ups of one message. Every question ends as a value; a resolver that throws is a bug. */
export function createLookUps(resolver: DnsResolver, limits: LookUpLimits = defaultLimits): LookUps {
  const asked = new Map<string, Promise<Answer<unknown>>>();
  let timer: NodeJS.Timeout | undefined;
  const outOfTime = new Promise<Answer<never>>((resolve) => {
    timer = setTimeout(() => resolve({ kind: "failed", reason: "timeout" }), limits.time_ms);
  });
  const once =
    <T>(type: keyof DnsResolver, ask: (name: string) => Promise<Answer<T>>) =>
    (name: string): Promise<Answer<T>> => {
      const key = `${type} ${name.toLowerCase()}`;
      const known = asked.get(key);
      if (known) return known as Promise<Answer<T>>;
      if (asked.size >= limits.look_ups_max) return Promise.resolve({ kind: "failed", reason: "too many look-ups" });
      const answer = Promise.race([ask(name), outOfTime]);
      asked.set(key, answer);
      return answer;
    };
  return {
    txt: once("txt", (name) => resolver.txt(name)),
    a: once("a", (name) => resolver.a(name)),
    aaaa: once("aaaa", (name) => resolver.aaaa(name)),
    mx: once("mx", (name) => resolver.mx(name)),
    ptr: once("ptr", (ip) => resolver.ptr(ip)),
    cname: once("cname", (name) => resolver.cname(name)),
    end: () => clearTimeout(timer),
  };
}
