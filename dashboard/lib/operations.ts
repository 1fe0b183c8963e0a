// The name of an operation as words: createApiKey → Create API key. Pure.
const WORDS: Record<string, string> = {
  ...{ api: "API", dkim: "DKIM", dmarc: "DMARC", ip: "IP", ips: "IPs", pgp: "PGP", tls: "TLS", totp: "TOTP" },
};

export function sayOperation(operation: string): string {
  const words = operation.split(/(?=[A-Z])|\s+/).map((word) => WORDS[word.toLowerCase()] ?? word.toLowerCase());
  const text = words.join(" ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
