// TLS parameters of outgoing SMTP: strict where a certificate counts, as lenient as can be where clear text is the
// alternative (RFC 7435). Contexts are made once: building one costs more than a handshake's share of CPU.
import { isIP } from "node:net";
import { type ConnectionOptions, createSecureContext, type SecureContext } from "node:tls";

type Wanted = { mode: "none" | "opportunistic" | "require" | "verify"; ca?: string };

let lenient: SecureContext | null = null;
let strict: SecureContext | null = null;

/** Options for the handshake with `host`. Nothing is rejected in it: the certificate is judged right after. */
export function tlsOptions(wanted: Wanted, host: string): ConnectionOptions {
  const secureContext = wanted.ca ? createSecureContext({ ca: wanted.ca, minVersion: "TLSv1.2" }) : contextFor(wanted);
  // SNI takes names only (RFC 6066 §3).
  const servername = isIP(host) ? undefined : host;
  return { host, servername, secureContext, rejectUnauthorized: false };
}

function contextFor(wanted: Wanted): SecureContext {
  if (wanted.mode === "opportunistic") {
    // TLS 1.0 with an old cipher still beats clear text, which is what we would fall back to.
    lenient ??= createSecureContext({ minVersion: "TLSv1", ciphers: "DEFAULT@SECLEVEL=0" });
    return lenient;
  }
  strict ??= createSecureContext({ minVersion: "TLSv1.2" });
  return strict;
}
