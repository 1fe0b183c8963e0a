// What the audit log says, as words: the name of an operation and back (createApiKey ↔ Create API key), and what it changed. Pure.
const WORDS: Record<string, string> = {
  ...{ api: "API", dkim: "DKIM", dmarc: "DMARC", ip: "IP", ips: "IPs", pgp: "PGP", tls: "TLS", totp: "TOTP" },
};

export function sayOperation(operation: string): string {
  const words = operation.split(/(?=[A-Z])|\s+/).map((word) => WORDS[word.toLowerCase()] ?? word.toLowerCase());
  const text = words.join(" ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** What these begin with are commands of the service, whose names are words already: `organizations set`. */
const OF_COMMANDS = new Set(["organizations", "people", "keys"]);

/** What is searched as the log shows it, or by the name that programs know. */
export function readOperation(text: string): string {
  const [first = "", ...others] = text.trim().toLowerCase().split(/\s+/);
  if (others.length === 0) return text.trim().replace(/^./, (letter) => letter.toLowerCase());
  if (OF_COMMANDS.has(first)) return [first, ...others].join(" ");
  return first + others.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
}

type Change = { field: string; before: string | null; after: string | null };

/** What became of each field: `active: true → false`, and the name alone where values are not kept. */
export function sayChanges({ fields, changes }: { fields: readonly string[]; changes: readonly Change[] }): string[] {
  const said = changes.map(({ field, before, after }) =>
    before === null ? `${field}: ${after ?? "–"}` : `${field}: ${before} → ${after ?? "–"}`,
  );
  const shown = new Set(changes.map(({ field }) => field.split(".")[0]));
  return [...said, ...fields.filter((field) => !shown.has(field))];
}
