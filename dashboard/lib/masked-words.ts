// What the API says of masked mail, in words. Pure.

/** `hard 5.1.1 invalid_recipient` → `The address takes no mail: 5.1.1, invalid recipient`. */
export function sayFailure(reason: string): string {
  const [kind, ...rest] = reason.split(" ");
  const facts = rest.map((word) => word.replaceAll("_", " ")).join(", ");
  const said = kind === "hard" ? "The address takes no mail" : kind === "soft" ? "Refused" : null;
  if (said === null) return reason;
  return facts === "" ? said : `${said}: ${facts}`;
}

/** In groups of four, as programs for OpenPGP show it. */
export function sayFingerprint(fingerprint: string): string {
  return fingerprint.match(/.{1,4}/g)?.join(" ") ?? "";
}

const SOON_MS = 30 * 86_400_000;

/** Whether a key still encrypts. `expires_at` null: it never ends. */
export function keyState(expires_at: string | null, nowMs: number): "over" | "soon" | "good" {
  if (expires_at === null) return "good";
  const leftMs = Date.parse(expires_at) - nowMs;
  return leftMs <= 0 ? "over" : leftMs < SOON_MS ? "soon" : "good";
}
