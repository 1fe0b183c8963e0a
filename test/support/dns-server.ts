// A real name server on loopback, UDP and TCP on one port, that answers from zones held in memory: for tests, the demo
// and the bench. It answers like a recursive server that is also the authority: aliases followed, NXDOMAIN and NODATA
// distinguished, SOA in negative answers. Not here: DNSSEC itself; `authenticated` merely sets the AD bit.
import { createSocket, type RemoteInfo, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, isIP, type Server, type Socket } from "node:net";
import {
  AUTHENTIC_DATA,
  AUTHORITATIVE_ANSWER,
  type Decoded,
  type Record as DnsRecord,
  decode,
  encode,
  type Opt,
  type Packet,
  type Question,
  RECURSION_AVAILABLE,
  RECURSION_DESIRED,
  TRUNCATED_RESPONSE,
} from "dns-packet";
import ipaddr from "ipaddr.js";

/**
 * Records by name and type. A, AAAA, CNAME, NS, PTR: a text. TXT: a text (split at 255 bytes) or its parts. MX:
 * `{exchange, preference}`. TLSA: `{usage, selector, matching_type, data}`. SOA: `{mname, rname, minimum, …}`. A PTR may
 * be set under the address itself. `*.name` stands for every absent name below (RFC 4592).
 */
export type Zones = Record<string, Record<string, unknown[]>>;

/** What a name does instead of answering: an error code, silence, or an empty truncated answer over UDP. */
export type DnsFault = "servfail" | "timeout" | "refused" | "truncate" | { rcode: number };

export type DnsServer = {
  /** `127.0.0.1:port`, as the setting for name servers has it. */
  address: string;
  set(name: string, type: string, records: unknown[], ttl_s?: number): void;
  remove(name: string, type?: string): void;
  /** Forgets all names and faults. */
  clear(): void;
  /** For questions of every type, or of one. */
  fail(name: string, fault: DnsFault, type?: string): void;
  /** Ends the faults of a name. */
  heal(name: string): void;
  /** What was asked, in order; the list may be emptied with `queries.length = 0`. */
  queries: { name: string; type: string; transport: "udp" | "tcp" }[];
  /** Whether answers carry the AD bit, as those of a validating server for signed zones do. */
  authenticated: boolean;
  stop(): Promise<void>;
};

type RecordSet = { records: unknown[]; ttl_s: number };
type State = {
  names: Map<string, Map<string, RecordSet>>;
  /** How many names with records lie at or below each name: the names that exist (RFC 8020). */
  below: Map<string, number>;
  /** By name and type; the type `*` is every one. */
  faults: Map<string, Map<string, DnsFault>>;
  server: DnsServer;
  ttl_s: number;
};

const QUERIES_KEPT_MAX = 100_000;
const ALIASES_MAX = 8;
const RCODES = { servfail: 2, refused: 5 } as const;
const NXDOMAIN = 3;
const PORT_TRIES = 20;

/** `host` and `port`: for programs that ask at port 53 only. */
export type DnsServerOptions = { ttl_s?: number; host?: string; port?: number };

/**
 * Starts the server with the given zones. Records have a TTL of `ttl_s` unless `set` says otherwise; the default is 0,
 * so that no cache hides a change a test makes; a bench sets what the real world has.
 */
export async function startDnsServer(zones: Zones = {}, options: DnsServerOptions = {}): Promise<DnsServer> {
  const { host = "127.0.0.1" } = options;
  const { udp, tcp, port } = await bindBoth(host, options.port ?? 0);
  const sockets = new Set<Socket>();
  const state = createState(`${host}:${port}`, options.ttl_s ?? 0);
  state.server.stop = async () => {
    for (const socket of sockets) socket.destroy();
    await Promise.all([new Promise((done) => tcp.close(done)), new Promise<void>((done) => udp.close(done))]);
  };
  udp.on("message", (bytes, from) => serveUdp(state, udp, bytes, from));
  tcp.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => {});
    serveTcp(state, socket);
  });
  for (const [name, types] of Object.entries(zones)) {
    for (const [type, records] of Object.entries(types)) state.server.set(name, type, records);
  }
  return state.server;
}

async function bindBoth(host: string, wanted: number): Promise<{ udp: UdpSocket; tcp: Server; port: number }> {
  for (let tries = 0; tries < PORT_TRIES; tries += 1) {
    const udp = createSocket("udp4");
    udp.bind(wanted, host);
    await once(udp, "listening");
    const { port } = udp.address();
    const tcp = createServer().listen(port, host);
    try {
      await once(tcp, "listening");
      return { udp, tcp, port };
    } catch {
      udp.close();
    }
  }
  throw new Error("no port free for both UDP and TCP");
}

// --- zones -----------------------------------------------------------------------------------------------------------

function createState(address: string, ttl_s: number): State {
  const names: State["names"] = new Map();
  const faults: State["faults"] = new Map();
  const below: State["below"] = new Map();
  const count = (name: string, by: number) => {
    for (const parent of withParents(name)) below.set(parent, (below.get(parent) ?? 0) + by);
  };
  const server: DnsServer = {
    address,
    authenticated: false,
    queries: [],
    set: (name, type, records, ttl = ttl_s) => {
      const key = ownerName(name, type);
      if (!names.has(key)) count(key, 1);
      names.set(key, (names.get(key) ?? new Map()).set(type.toUpperCase(), { records, ttl_s: ttl }));
    },
    remove: (name, type) => {
      const key = ownerName(name, type ?? "");
      const types = names.get(key);
      if (type) types?.delete(type.toUpperCase());
      else types?.clear();
      if (types?.size === 0) {
        names.delete(key);
        count(key, -1);
      }
    },
    clear: () => {
      for (const map of [names, below, faults]) map.clear();
    },
    fail: (name, fault, type = "*") => {
      const key = ownerName(name, "");
      faults.set(key, (faults.get(key) ?? new Map()).set(type.toUpperCase(), fault));
    },
    heal: (name) => faults.delete(ownerName(name, "")),
    stop: async () => {},
  };
  return { names, below, faults, server, ttl_s };
}

function ownerName(name: string, type: string): string {
  if (type.toUpperCase() === "PTR" && isIP(name)) return reverseName(name);
  return name.toLowerCase().replace(/\.$/, "");
}

function reverseName(ip: string): string {
  const bytes = ipaddr.parse(ip).toByteArray();
  if (bytes.length === 4) return `${bytes.reverse().join(".")}.in-addr.arpa`;
  return `${[...Buffer.from(bytes).toString("hex")].reverse().join(".")}.ip6.arpa`;
}

function withParents(name: string): string[] {
  const labels = name.split(".");
  return labels.map((_, index) => labels.slice(index).join("."));
}

function exists(state: State, name: string): boolean {
  return (state.below.get(name) ?? 0) > 0;
}

function typesOf(state: State, name: string): Map<string, RecordSet> | undefined {
  if (exists(state, name)) return state.names.get(name) ?? new Map();
  const encloser = withParents(name).find((parent) => exists(state, parent));
  return encloser === undefined ? undefined : state.names.get(`*.${encloser}`);
}

// --- answers ---------------------------------------------------------------------------------------------------------

type Reply = { rcode: number; answers: DnsRecord[]; authorities: DnsRecord[] };

function resolveQuestion(state: State, question: Question): Reply {
  const answers: DnsRecord[] = [];
  let name = question.name.toLowerCase();
  for (let aliases = 0; aliases <= ALIASES_MAX; aliases += 1) {
    const types = typesOf(state, name);
    if (!types) return { rcode: NXDOMAIN, answers, authorities: [soaFor(state, name)] };
    const wanted = types.get(question.type);
    const alias = types.get("CNAME");
    if (wanted?.records.length)
      return { rcode: 0, answers: [...answers, ...toRecords(name, question.type, wanted)], authorities: [] };
    if (!alias) return { rcode: 0, answers, authorities: [soaFor(state, name)] };
    answers.push(...toRecords(name, "CNAME", alias));
    name = String(alias.records[0]).toLowerCase().replace(/\.$/, "");
  }
  return { rcode: 0, answers, authorities: [] };
}

function soaFor(state: State, name: string): DnsRecord {
  for (const parent of withParents(name)) {
    const soa = state.names.get(parent)?.get("SOA");
    if (soa) return toRecords(parent, "SOA", soa)[0]!;
  }
  const data = { mname: "ns.invalid", rname: "hostmaster.invalid", serial: 1, minimum: state.ttl_s };
  return { name: ".", type: "SOA", ttl: state.ttl_s, data };
}

function toRecords(name: string, type: string, set: RecordSet): DnsRecord[] {
  return set.records.map((record) => ({ name, type, ttl: set.ttl_s, data: toRecordValue(type, record) }));
}

function toRecordValue(type: string, record: unknown): unknown {
  if (type === "TXT")
    return (Array.isArray(record) ? record : inParts(String(record))).map((part) => Buffer.from(part));
  if (type === "MX") {
    const mx = record as { exchange: string; preference?: number; priority?: number };
    return { exchange: mx.exchange || ".", preference: mx.preference ?? mx.priority ?? 10 };
  }
  if (type !== "TLSA") return record;
  const tlsa = record as { usage: number; selector: number; matching_type: number; data: Buffer | string };
  const certificate = Buffer.isBuffer(tlsa.data) ? tlsa.data : Buffer.from(tlsa.data, "hex");
  return { usage: tlsa.usage, selector: tlsa.selector, matchingType: tlsa.matching_type, certificate };
}

// RFC 1035 §3.3: a character string has at most 255 bytes.
function inParts(text: string): Buffer[] {
  const bytes = Buffer.from(text);
  const parts = [bytes.subarray(0, 255)];
  for (let at = 255; at < bytes.length; at += 255) parts.push(bytes.subarray(at, at + 255));
  return parts;
}

// --- transports ------------------------------------------------------------------------------------------------------

function readQuery(bytes: Buffer): Decoded | null {
  try {
    const packet = decode(bytes);
    return packet.type === "query" && packet.questions.length === 1 ? packet : null;
  } catch {
    return null;
  }
}

/** The reply's bytes; null is silence. `bytesMax` is what the transport and the asker take. */
function answer(state: State, bytes: Buffer, transport: "udp" | "tcp"): Buffer | null {
  const query = readQuery(bytes);
  if (!query) return null;
  const question = query.questions[0]!;
  const { queries } = state.server;
  if (queries.length < QUERIES_KEPT_MAX)
    queries.push({ name: question.name.toLowerCase(), type: question.type, transport });
  const faults = state.faults.get(question.name.toLowerCase());
  const fault = faults?.get(question.type) ?? faults?.get("*");
  if (fault === "timeout") return null;
  if (fault === "truncate" && transport === "udp") return reply(state, query, { truncated: true });
  if (fault && fault !== "truncate") {
    return reply(state, query, { rcode: typeof fault === "object" ? fault.rcode : RCODES[fault] });
  }
  const whole = reply(state, query, resolveQuestion(state, question));
  const fits = transport === "tcp" || whole.length <= (optOf(query)?.udpPayloadSize ?? 512);
  return fits ? whole : reply(state, query, { truncated: true });
}

function optOf(query: Decoded): Opt | undefined {
  return query.additionals.find((record): record is Opt => record.type === "OPT");
}

function reply(state: State, query: Decoded, content: Partial<Reply> & { truncated?: boolean }): Buffer {
  const rcode = content.rcode ?? 0;
  const flags = AUTHORITATIVE_ANSWER | RECURSION_AVAILABLE | (query.flag_rd ? RECURSION_DESIRED : 0) | (rcode & 0xf);
  const authentic = state.server.authenticated && (query.flag_ad || optOf(query)?.flag_do === true);
  const packet: Packet = {
    id: query.id,
    type: "response",
    flags: flags | (content.truncated ? TRUNCATED_RESPONSE : 0) | (authentic ? AUTHENTIC_DATA : 0),
    questions: query.questions,
    answers: content.answers ?? [],
    authorities: content.authorities ?? [],
  };
  if (optOf(query)) packet.additionals = [{ name: ".", type: "OPT", udpPayloadSize: 1232, extendedRcode: rcode >> 4 }];
  return encode(packet);
}

function serveUdp(state: State, udp: UdpSocket, bytes: Buffer, from: RemoteInfo): void {
  const answered = answer(state, bytes, "udp");
  if (answered) udp.send(answered, from.port, from.address);
}

function serveTcp(state: State, socket: Socket): void {
  let received: Buffer = Buffer.alloc(0);
  socket.setTimeout(10_000, () => socket.destroy());
  socket.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    while (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) {
      const end = 2 + received.readUInt16BE(0);
      const answered = answer(state, received.subarray(2, end), "tcp");
      received = received.subarray(end);
      if (!answered) continue;
      const length = Buffer.alloc(2);
      length.writeUInt16BE(answered.length);
      socket.write(Buffer.concat([length, answered]));
    }
  });
}
