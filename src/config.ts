// The only reader of the environment. Reports every problem at once, in sentences that name the variable and the
// remedy, so that a first start on a new machine needs one correction, not five.
import { existsSync, readFileSync } from "node:fs";
import { isIP } from "node:net";
import { join, resolve } from "node:path";
import { normalizeDomain } from "./mail/address.ts";
import { readBlockList } from "./mail/spam/block-lists.ts";
import { databaseHost, tlsModeProblem, withCheckedTls } from "./platform/database/database-url.ts";
import { CONNECTIONS_MAX, CONNECTIONS_MIN } from "./platform/database/session-settings.ts";
import { parseServer } from "./platform/dns/dns-exchange.ts";
import { clashesOf, type HostPort, placesOf } from "./platform/net/places.ts";
import { fileWords } from "./platform/process/file-words.ts";
import type { S3Access, S3Options } from "./platform/storage/s3.ts";
import { type AcmeConfig, certificates } from "./settings/certificates.ts";
import { ENV_FILE, type Gathered, gatherSettings } from "./settings/gather.ts";
import { makeIfAbsent, readKey, readKeyFile } from "./settings/master-key-file.ts";
import { backupStore, bodyStore } from "./settings/s3.ts";
import { type OidcSettings, oidcSettings, type SignUps, signUps } from "./settings/sign-in.ts";
import { type TraceSettings, traceOptions, tracesDisabled } from "./settings/traces.ts";
import { flag, hostPort, isWebAddress, type Reading, wholeNumber, withoutPassword, words } from "./settings/values.ts";

export const ROLES = ["api", "mx", "mta", "hooks", "clock", "submission"] as const;
export type Role = (typeof ROLES)[number];
const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];

export type Config = {
  database_url: string | null;
  /** A pooler in front of it; null: none. */
  database_pooler_url: string | null;
  /** How many connections to it this process opens at most, but for those that LISTEN. */
  database_connections: number;
  data_dir: string;
  hostname: string;
  mx_host: string;
  bounce_host: string;
  report_domain: string;
  masked_domain: string;
  spf_host: string;
  /** The addresses that others see; empty: what `hostname` resolves to. */
  public_addresses: string[];
  base_url: string;
  http: HostPort;
  internal: HostPort;
  internal_is_default: boolean;
  mx: HostPort;
  submission: HostPort;
  submissions: HostPort | null;
  /** The API and the dashboard over TLS. */
  https: HostPort | null;
  acme: AcmeConfig | null;
  tls_cert_file: string | null;
  tls_key_file: string | null;
  dns_servers: string[];
  dns_validating: boolean;
  dns_block_lists: string[];
  master_key: Buffer;
  s3: S3Options | null;
  /** Where traces go; null: there are none. */
  traces: TraceSettings | null;
  /** By OpenTelemetry's own switch, whatever the endpoint. */
  traces_disabled: boolean;
  /** What `postern backup` encrypts with: a passphrase, or age public keys; and the store behind s3://bucket/key. */
  backup: { passphrase: string | null; recipients: string[]; s3: S3Access | null };
  rspamd_url: string | null;
  /** Where people may sign in besides. */
  oidc: OidcSettings | null;
  /** Who may make an organization of their own. */
  sign_up: SignUps;
  proxy_protocol_from: string[];
  /** At submission, clients of these have TLS with them. */
  proxies_end_tls: boolean;
  /** The door of several cells (cells/door.ts), of which this Postern is one. */
  cells_door: HostPort | null;
  trusted_proxies: string[];
  allowed_networks: string[];
  greylisting: boolean;
  /** True if reports on TLS are sent to the domains that ask for them. */
  tls_reports: boolean;
  log_level: string;
  bootstrap_live_key: string | null;
  bootstrap_test_key: string | null;
  retention_days: { message: number; body: number; event: number; inbound: number };
  body_inline_bytes_max: number;
  /** Started by one of our scripts in package.json: there is a shell between npm and us. */
  is_under_npm: boolean;
  /** Variables that look like settings and are none, or have no effect beside the others: typing errors, mostly. */
  unused: string[];
  testing: {
    outbound_port: number | null;
    allow_loopback: boolean;
    clock_file: string | null;
    dns_timeout_ms: number | null;
  };
};

/** Raised once with all problems of the environment; `message` is ready to print. */
export class ConfigProblems extends Error {
  readonly problems: string[];
  constructor(problems: string[]) {
    super(`Postern cannot start:\n${problems.map((problem) => `  - ${problem}`).join("\n")}`);
    this.problems = problems;
  }
}

type Reader = Reading & { given: NodeJS.ProcessEnv; read: Set<string> };

/**
 * Variables of tests and benchmarks, and those that Kubernetes puts into every container beside a service called
 * postern.
 */
const NOT_SETTINGS =
  /^POSTERN_(TEST_|SLOW_CLIENTS$|LEAK_TREES$|CONTRACT_EXAMPLES$|PORT($|_\d)|PORT_|SERVICE_(HOST|PORT))/;

/** Settings as they are found, where nothing may be made: without a master key when there is none yet. */
export type FoundConfig = Omit<Config, "master_key"> & { master_key: Buffer | null };

let gathered: Gathered | null = null;

/**
 * The process's own settings with their origins. They are gathered once: what root could read of files with secrets is kept
 * when Postern goes on as a user of its own.
 */
export function ownSettings(): Gathered {
  gathered ??= gatherSettings(process.env);
  return gathered;
}

/** Takes settings from the file of `--env-file` as well. To be called before anything reads settings. */
export function useEnvFile(path: string): void {
  process.env[ENV_FILE] = path;
}

/** Reads and checks the settings; throws ConfigProblems naming every bad variable. Creates the data folder and the master key file when absent. */
export function readConfig(env?: NodeJS.ProcessEnv): Config {
  const reader = readerOf(env);
  return finished(reader, { ...settings(reader), master_key: masterKey(reader, makeIfAbsent), ...unused(reader) });
}

/** The same without making anything. */
export function findConfig(env?: NodeJS.ProcessEnv): FoundConfig {
  const reader = readerOf(env);
  return finished(reader, { ...settings(reader), master_key: masterKey(reader, existsSync), ...unused(reader) });
}

/** Remembers what was asked for: that is all there is. */
function readerOf(env: NodeJS.ProcessEnv | undefined): Reader {
  const { env: given, problems } = env === undefined ? ownSettings() : gatherSettings(env);
  const read = new Set<string>();
  const get = (variables: NodeJS.ProcessEnv, name: string | symbol): string | undefined => {
    read.add(String(name));
    return variables[String(name)];
  };
  return { env: new Proxy(given, { get }), given, problems: [...problems], read };
}

function unused({ read, given }: Reader): Pick<Config, "unused"> {
  const names = Object.keys(given).filter((name) => name.startsWith("POSTERN_") && given[name]);
  return { unused: names.filter((name) => !read.has(name) && !NOT_SETTINGS.test(name)).sort() };
}

function finished<T>({ problems }: Reader, config: T): T {
  if (problems.length > 0) throw new ConfigProblems(problems);
  return config;
}

function settings(reader: Reader): Omit<Config, "master_key" | "unused"> {
  const found = eachSetting(reader);
  // Of those that were given: a process that has not all roles may well have the port of another one's default.
  const given = placesOf(found).filter(({ variable, port }) => reader.env[variable]?.endsWith(`:${port}`));
  reader.problems.push(...clashesOf(given));
  if (found.proxies_end_tls && found.proxy_protocol_from.length === 0) {
    reader.problems.push("POSTERN_PROXY_TLS needs POSTERN_PROXY_PROTOCOL_FROM as well: which load balancers end TLS.");
  }
  return found;
}

function eachSetting(reader: Reader): Omit<Config, "master_key" | "unused"> {
  const { env } = reader;
  const hostname = hostName(reader, "POSTERN_HOSTNAME", "postern.localhost");
  const http = hostPort(reader, "POSTERN_HTTP", "127.0.0.1:8080");
  const https = env.POSTERN_HTTPS ? hostPort(reader, "POSTERN_HTTPS", "0.0.0.0:443") : null;
  return {
    database_url: databaseUrl(reader, "DATABASE_URL"),
    database_pooler_url: poolerUrl(reader),
    database_connections: wholeNumber(reader, "POSTERN_DATABASE_CONNECTIONS", CONNECTIONS_MAX, CONNECTIONS_MIN),
    data_dir: dataFolder(reader),
    hostname,
    ...derivedHosts(reader, hostname),
    public_addresses: publicAddresses(reader),
    base_url: baseUrl(reader, { hostname, http, https }),
    http,
    https,
    internal: hostPort(reader, "POSTERN_INTERNAL", "127.0.0.1:9180"),
    internal_is_default: !env.POSTERN_INTERNAL,
    mx: hostPort(reader, "POSTERN_MX", "127.0.0.1:2525"),
    submission: hostPort(reader, "POSTERN_SUBMISSION", "127.0.0.1:2587"),
    submissions: env.POSTERN_SUBMISSIONS ? hostPort(reader, "POSTERN_SUBMISSIONS", "0.0.0.0:465") : null,
    ...certificates(reader, !isLocalName(hostname)),
    dns_servers: dnsServers(reader),
    dns_validating: flag(reader, "POSTERN_DNS_VALIDATING"),
    dns_block_lists: blockLists(reader),
    s3: bodyStore(reader),
    traces: traceOptions(reader),
    traces_disabled: tracesDisabled(reader),
    backup: backupKeys(reader),
    rspamd_url: rspamdUrl(reader),
    oidc: oidcSettings(reader),
    sign_up: signUps(reader),
    proxies_end_tls: flag(reader, "POSTERN_PROXY_TLS"),
    cells_door: env.POSTERN_CELLS_DOOR ? hostPort(reader, "POSTERN_CELLS_DOOR", "127.0.0.1:9190") : null,
    proxy_protocol_from: networks(reader, "POSTERN_PROXY_PROTOCOL_FROM", "load balancers"),
    trusted_proxies: networks(reader, "POSTERN_TRUSTED_PROXIES", "reverse proxies"),
    allowed_networks: networks(
      reader,
      "POSTERN_ALLOWED_NETWORKS",
      "your own that customers' webhooks and relays may reach",
    ),
    greylisting: flag(reader, "POSTERN_GREYLISTING"),
    tls_reports: flag(reader, "POSTERN_TLS_REPORTS", true),
    log_level: logLevel(reader),
    bootstrap_live_key: firstKey(reader, "live"),
    bootstrap_test_key: firstKey(reader, "test"),
    retention_days: retentionDays(reader),
    body_inline_bytes_max: 256 * 1024,
    is_under_npm: env.npm_package_name === "postern" && /^(start|postern)$/.test(env.npm_lifecycle_event ?? ""),
    testing: testingSettings(reader),
  };
}

function isLocalName(name: string): boolean {
  return name === "localhost" || name.endsWith(".localhost");
}

function dataFolder({ env }: Reader): string {
  return resolve(env.POSTERN_DATA || "data");
}

/** The values that may be printed at start: no key, no password, no database credential. */
export function printableConfig(config: Config): Record<string, unknown> {
  const { master_key: _key, s3, database_url, database_pooler_url: pooler, backup: _backup, traces, ...shown } = config;
  const { bootstrap_live_key: _live, bootstrap_test_key: _test, oidc, ...open } = shown;
  return {
    ...open,
    oidc: oidc && { ...oidc, client_secret: undefined },
    database: database_url ? databaseHost(database_url) : "embedded",
    database_pooler: pooler && databaseHost(pooler),
    traces: traces && withoutPassword(traces.url),
    s3: s3 ? { endpoint: s3.endpoint, bucket: s3.bucket } : null,
  };
}

function hostName(reader: Reader, variable: string, fallback: string): string {
  const text = reader.env[variable] || fallback;
  const name = normalizeDomain(text);
  if (name) return name;
  reader.problems.push(`${variable} is "${text}", which is not a host name such as mail.example.eu.`);
  return fallback;
}

function derivedHosts(reader: Reader, hostname: string) {
  return {
    mx_host: hostName(reader, "POSTERN_MX_HOST", `mx.${hostname}`),
    bounce_host: hostName(reader, "POSTERN_BOUNCE_HOST", `bounces.${hostname}`),
    report_domain: hostName(reader, "POSTERN_REPORT_DOMAIN", `reports.${hostname}`),
    masked_domain: hostName(reader, "POSTERN_MASKED_DOMAIN", `masked.${hostname}`),
    spf_host: spfHost(reader, `_spf.${hostname}`),
  };
}

/** A name for TXT records may begin with an underscore; what stands behind it is a host name. */
function spfHost(reader: Reader, fallback: string): string {
  const text = reader.env.POSTERN_SPF_HOST || fallback;
  const name = normalizeDomain(text.replace(/^_/, ""));
  if (name) return text.startsWith("_") ? `_${name}` : name;
  reader.problems.push(`POSTERN_SPF_HOST is "${text}", which is not a name such as _spf.mail.example.eu.`);
  return fallback;
}

function publicAddresses(reader: Reader): string[] {
  const addresses = words(reader.env.POSTERN_PUBLIC_ADDRESSES);
  for (const address of addresses.filter((word) => isIP(word) === 0)) {
    reader.problems.push(`POSTERN_PUBLIC_ADDRESSES holds "${address}"; write IP addresses alone, separated by commas.`);
  }
  return addresses;
}

type Web = { hostname: string; http: HostPort; https: HostPort | null };

function baseUrl(reader: Reader, { hostname, http, https }: Web): string {
  const ofHttps = https && `https://${hostname}${https.port === 443 ? "" : `:${https.port}`}`;
  const ofHttp = `http://${http.host.includes(":") ? `[${http.host}]` : http.host}:${http.port}`;
  const text = reader.env.POSTERN_BASE_URL || (ofHttps ?? ofHttp);
  const bare = text.replace(/\/+$/, "");
  // Paths are put behind it: a query or a fragment would swallow them. The dashboard is at the root, and so are its cookies.
  const isAddress = isWebAddress(bare) && !/[?#@]/.test(bare);
  if (isAddress && new URL(bare).pathname === "/") return bare;
  const otherwise = isAddress
    ? ", which has a path. Postern needs a host name of its own: write https://<that name> alone."
    : "; write the public address alone, such as https://mail.example.eu.";
  reader.problems.push(`POSTERN_BASE_URL is "${withoutPassword(text)}"${otherwise}`);
  return "http://127.0.0.1:8080";
}

function databaseUrl(reader: Reader, variable: string): string | null {
  const text = reader.env[variable];
  if (!text) return null;
  if (!/^postgres(ql)?:\/\//.test(text)) {
    const or = variable === "DATABASE_URL" ? " (leave it out to use the embedded database)" : "";
    reader.problems.push(`${variable} must begin with postgresql://${or}.`);
  } else if (databaseHost(text) === null) {
    reader.problems.push(
      `${variable} cannot be read: write postgresql://user:password@host:5432/database, with every character of the password but letters and digits percent-encoded (# as %23).`,
    );
  }
  const tls = tlsModeProblem(text);
  if (tls) reader.problems.push(`${variable}: ${tls}`);
  return withCheckedTls(text);
}

function poolerUrl(reader: Reader): string | null {
  if (reader.env.POSTERN_DATABASE_POOLER && !reader.env.DATABASE_URL) {
    reader.problems.push("POSTERN_DATABASE_POOLER needs DATABASE_URL as well: the same database without the pooler.");
  }
  return databaseUrl(reader, "POSTERN_DATABASE_POOLER");
}

function dnsServers(reader: Reader): string[] {
  const servers = words(reader.env.POSTERN_DNS);
  for (const server of servers.filter((word) => !isNameServer(word))) {
    reader.problems.push(`POSTERN_DNS holds "${server}"; write IP addresses with a port, such as 127.0.0.1:53.`);
  }
  return servers.map((server) => (/^[0-9.]+$|\]$/.test(server) ? `${server}:53` : server));
}

function isNameServer(text: string): boolean {
  try {
    return parseServer(text).port > 0;
  } catch {
    return false;
  }
}

function networks({ env, problems }: Reader, variable: string, whose: string): string[] {
  const entries = words(env[variable]);
  for (const entry of entries.filter((word) => !isNetwork(word))) {
    problems.push(
      `${variable} holds "${entry}"; write addresses or networks of ${whose}, such as 10.0.0.7 or 10.0.0.0/24.`,
    );
  }
  return entries;
}

function isNetwork(text: string): boolean {
  const [address = "", bits, more] = text.split("/");
  const family = isIP(address);
  if (family === 0 || more !== undefined) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
}

function logLevel({ env, problems }: Reader): string {
  const level = (env.POSTERN_LOG_LEVEL || "info").toLowerCase();
  if (!LOG_LEVELS.includes(level)) {
    problems.push(`POSTERN_LOG_LEVEL is "${env.POSTERN_LOG_LEVEL}"; write one of ${LOG_LEVELS.join(", ")}.`);
  }
  return level;
}

function blockLists(reader: Reader): string[] {
  const lists = words(reader.env.POSTERN_DNS_BLOCK_LISTS);
  for (const list of lists.filter((word) => readBlockList(word) === null)) {
    reader.problems.push(
      `POSTERN_DNS_BLOCK_LISTS holds "${list}"; write zones such as zen.example.org, zen.example.org=3 (its score) or domain:dbl.example.org.`,
    );
  }
  return lists;
}

function rspamdUrl(reader: Reader): string | null {
  const text = reader.env.POSTERN_RSPAMD_URL;
  if (!text) return null;
  // A path is put behind it.
  if (isWebAddress(text) && !/[?#]/.test(text)) return text.replace(/\/+$/, "");
  reader.problems.push(
    `POSTERN_RSPAMD_URL is "${withoutPassword(text)}"; write where rspamd listens, such as http://127.0.0.1:11333.`,
  );
  return null;
}

/** `isThere` looks for the file with the key, and may make it. */
function masterKey(reader: Reader, isThere: (path: string) => true): Buffer;
function masterKey(reader: Reader, isThere: (path: string) => boolean): Buffer | null;
function masterKey(reader: Reader, isThere: (path: string) => boolean): Buffer | null {
  const text = reader.env.POSTERN_MASTER_KEY;
  if (text) {
    const key = readKey(text);
    if (key) return key;
    reader.problems.push("POSTERN_MASTER_KEY must be 32 bytes in hex or base64 (make one with: openssl rand -hex 32).");
    return Buffer.alloc(32);
  }
  return masterKeyFile(reader, isThere);
}

function masterKeyFile(reader: Reader, isThere: (path: string) => boolean): Buffer | null {
  const dataDir = dataFolder(reader);
  const path = join(dataDir, "master.key");
  try {
    if (!isThere(path)) return null;
    const text = readFileSync(path, "utf8").trim();
    const key = readKeyFile(text);
    if (key) return key;
    reader.problems.push(`${path} is damaged: put your copy of it back. Without it no stored secret can be read.`);
    return Buffer.alloc(32);
  } catch (error) {
    reader.problems.push(
      `the data folder ${dataDir} cannot be used (${fileWords(error) ?? (error as Error).message}); set POSTERN_DATA to a writable folder, and start Postern as the user whom it belongs to.`,
    );
    return Buffer.alloc(32);
  }
}

function backupKeys(reader: Reader): Config["backup"] {
  const { env, problems } = reader;
  const recipients = words(env.POSTERN_BACKUP_RECIPIENTS);
  if (recipients.some((word) => !/^age1[0-9a-z]{50,}$/.test(word))) {
    problems.push(
      "POSTERN_BACKUP_RECIPIENTS holds a value that is not an age public key; write age1…, separated by commas.",
    );
  }
  return { passphrase: env.POSTERN_BACKUP_PASSPHRASE || null, recipients, s3: backupStore(reader) };
}

/** Days a day partition is kept. Bodies outlive the longest schedule (30 days) plus the longest retry (72 h). */
function retentionDays(reader: Reader): Config["retention_days"] {
  return {
    message: wholeNumber(reader, "POSTERN_RETENTION_MESSAGE_DAYS", 90, 36),
    body: wholeNumber(reader, "POSTERN_RETENTION_BODY_DAYS", 36, 36),
    event: wholeNumber(reader, "POSTERN_RETENTION_EVENT_DAYS", 90, 36),
    inbound: wholeNumber(reader, "POSTERN_RETENTION_INBOUND_DAYS", 90, 1),
  };
}

function testingSettings(reader: Reader): Config["testing"] {
  const port = reader.env.POSTERN_TESTING_OUTBOUND_PORT;
  const wait = reader.env.POSTERN_TESTING_DNS_TIMEOUT_MS;
  return {
    outbound_port: port ? wholeNumber(reader, "POSTERN_TESTING_OUTBOUND_PORT", 25, 1) : null,
    allow_loopback: flag(reader, "POSTERN_TESTING_ALLOW_LOOPBACK"),
    clock_file: reader.env.POSTERN_TESTING_CLOCK_FILE || null,
    dns_timeout_ms: wait ? wholeNumber(reader, "POSTERN_TESTING_DNS_TIMEOUT_MS", 5_000, 10) : null,
  };
}

/** A key that the operator gives for the first start; wrong ones would be noticed only when they are used. */
function firstKey(reader: Reader, environment: "live" | "test"): string | null {
  const variable = `POSTERN_BOOTSTRAP_${environment.toUpperCase()}_KEY`;
  const key = reader.env[variable];
  if (!key) return null;
  // The same shape as in accounts/keys.ts. The value is not repeated: it is a secret.
  if (!new RegExp(`^svc_${environment}_[0-9A-Za-z_-]{16,128}$`).test(key)) {
    reader.problems.push(
      `${variable} must begin with svc_${environment}_ and go on with 16 to 128 letters, digits, _ or -.`,
    );
  }
  return key;
}
