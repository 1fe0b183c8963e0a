// What DATABASE_URL says, for people: which server it names. Not here: connecting to it (db.ts).

/** The server that a PostgreSQL URL names, without user and password; null when it cannot be read. */
export function databaseHost(databaseUrl: string): string | null {
  // Without a host (`postgresql://user@/database?host=/run/postgresql`) libpq takes the socket; URL takes it for a fault.
  const text = databaseUrl.replace("@/", "@localhost/");
  if (!URL.canParse(text)) return null;
  const url = new URL(text);
  return url.searchParams.get("host") ?? (url.host || "socket");
}

const MODES = ["disable", "no-verify", "allow", "prefer", "require", "verify-ca", "verify-full"];
const LESS_THAN_FULL = /(?<=[?&]sslmode=)(allow|prefer|require|verify-ca)(?=&|$)/;

/** What is wrong with `sslmode` of a PostgreSQL URL, in a sentence; null when nothing is. */
export function tlsModeProblem(databaseUrl: string): string | null {
  const mode = /[?&]sslmode=([^&]*)/.exec(databaseUrl)?.[1];
  if (mode === undefined || MODES.includes(mode)) return null;
  return `sslmode is "${mode.slice(0, 40)}"; write verify-full (with sslrootcert=/path/ca.pem for an authority of your own), no-verify or disable.`;
}

/**
 * The URL as our driver is to read it. Deliberate: every mode that asks for TLS also checks the certificate and its name;
 * libpq's `require` would take any server's. `sslrootcert=system` is the driver's own list of authorities.
 */
export function withCheckedTls(databaseUrl: string): string {
  return databaseUrl.replace(LESS_THAN_FULL, "verify-full").replace(/(?<=[?&])sslrootcert=system(&|$)/, "");
}
