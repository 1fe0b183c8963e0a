// What DATABASE_URL says, for people: which server it names. Not here: connecting to it (db.ts).

/** The server that a PostgreSQL URL names, without user and password; null when it cannot be read. */
export function databaseHost(databaseUrl: string): string | null {
  // Without a host (`postgresql://user@/database?host=/run/postgresql`) libpq takes the socket; URL takes it for a fault.
  const text = databaseUrl.replace("@/", "@localhost/");
  if (!URL.canParse(text)) return null;
  const url = new URL(text);
  return url.searchParams.get("host") ?? (url.host || "socket");
}
