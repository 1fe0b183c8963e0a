// What failed in TLS, in plain words: the reasons that OpenSSL and Node give as codes and traces, each with its cause. For
// timelines, reports and logs, which people read. Not here: what follows from a failure, which the callers decide by code.

/** What Node says of a failure: `code`, and OpenSSL's own words, as a property or within the message. */
export type TlsTrouble = { code?: string | undefined; reason?: string | undefined; message: string };

const WORDS_LENGTH_MAX = 200;

/** OpenSSL's reasons (crypto/err/openssl.txt), where alerts are the other side's. The first that fits counts. */
const HANDSHAKE: readonly (readonly [reason: RegExp, words: string])[] = [
  [/^(wrong version number|http request|packet length too long|record layer failure)$/, "what came was not TLS"],
  [
    /^(unsupported protocol|version too low|no protocols available|tlsv1 alert protocol version)$/,
    "the two sides have no TLS version in common",
  ],
  [
    /^(no shared cipher|no ciphers? (match|available)|(sslv3|ssl\/tls) alert handshake failure|no suitable .*)$/,
    "the two sides have no cipher or key exchange in common",
  ],
  [/^(dh key|ee key|ca key|modulus) too (small|weak)$|^ca md too weak$/, "the server's key or signature is too weak"],
  [/unrecognized name/, "the server does not know the host name that it was asked for"],
  [/alert certificate required|peer did not return/, "the server wants a certificate from its clients"],
  [
    /alert (bad certificate|certificate (unknown|expired|revoked)|unknown ca|unsupported certificate|access denied)/,
    "the other side does not accept the certificate",
  ],
  [/unexpected eof|shutdown while in init/, "the other side closed the connection"],
  [/bad record mac|decryption failed|digest check failed|decrypt error/, "encrypted data came damaged"],
  [/renegotiation/, "the server wants a form of renegotiation that is not safe"],
  [/alert internal error/, "the server reports an internal error"],
  [/alert (no application protocol)/, "the two sides have no application protocol in common"],
  [/alert (decode error|illegal parameter|unexpected message)/, "the server takes what we sent for a fault"],
];

/** X.509 verification codes as Node names them, and its own for names. The certificate is the subject. */
const CERTIFICATE = new Map<string, string>([
  ["CERT_HAS_EXPIRED", "it has expired"],
  ["CERT_NOT_YET_VALID", "it is not valid yet"],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "it is self-signed"],
  ["SELF_SIGNED_CERT_IN_CHAIN", "its chain ends at an authority that is not trusted here"],
  ["UNABLE_TO_GET_ISSUER_CERT", "its chain is not complete, or its authority is not trusted here"],
  ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "its chain is not complete, or its authority is not trusted here"],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "its chain is not complete, or its authority is not trusted here"],
  ["CERT_UNTRUSTED", "its authority is not trusted here"],
  ["CERT_REJECTED", "its authority rejects it for this use"],
  ["CERT_REVOKED", "it was revoked"],
  ["CERT_SIGNATURE_FAILURE", "its signature is wrong"],
  ["CERT_CHAIN_TOO_LONG", "its chain is too long"],
  ["PATH_LENGTH_EXCEEDED", "its chain is longer than its authority allows"],
  ["INVALID_CA", "its issuer is not an authority"],
  ["INVALID_PURPOSE", "it was not made for servers"],
  ["HOSTNAME_MISMATCH", "it is for other names"],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "it is for other names"],
]);

/** A clause without a final point, such as "the TLS handshake failed: what came was not TLS". */
export function tlsFailureWords(trouble: TlsTrouble): string {
  const certificate = CERTIFICATE.get(trouble.code ?? "");
  if (certificate !== undefined) return `the certificate is not valid: ${certificate}`;
  if (/^(ECONNRESET|EPIPE)$/.test(trouble.code ?? "")) return "the other side broke the TLS connection off";
  const reason = reasonOf(trouble);
  if (reason === null) return trouble.message;
  const words = HANDSHAKE.find(([pattern]) => pattern.test(reason))?.[1];
  return `the TLS handshake failed: ${words ?? `OpenSSL says "${reason.slice(0, WORDS_LENGTH_MAX)}"`}`;
}

/** What is wrong with a certificate's or a key's file, or with the two together. */
const FILES: readonly (readonly [reason: RegExp, words: string])[] = [
  [/no start line|bad end line|not enough data/, "it holds no certificate or key in PEM form"],
  [/key values mismatch|key type mismatch/, "the key does not belong to the certificate"],
  [/bad decrypt|interrupted or cancelled|bad password read/, "the key is locked with a passphrase"],
  [/(ee|ca) key too small|ca md too weak/, "its key or signature is too weak"],
  [
    /unsupported|bad base64 decode|asn1|header too long|wrong tag|nested/,
    "it is damaged, or of a kind that is not known",
  ],
];

/** Why a certificate and a key cannot be used: a clause without a final point. */
export function keyFileWords(trouble: TlsTrouble): string {
  const reason = reasonOf(trouble);
  if (reason === null) return trouble.message;
  return FILES.find(([pattern]) => pattern.test(reason))?.[1] ?? `OpenSSL says "${reason.slice(0, WORDS_LENGTH_MAX)}"`;
}

/** `error:0A00010B:SSL routines:ssl3_get_record:wrong version number:…`: the fifth field; null where OpenSSL says nothing. */
function reasonOf({ reason, message }: TlsTrouble): string | null {
  const [, inMessage] = /error:[0-9A-F]{8}:[^:\n]*:[^:\n]*:([^:\n]+)/i.exec(message) ?? [];
  const found = reason ?? inMessage;
  return found === undefined ? null : found.trim().toLowerCase();
}

/** What is wrong with a certificate, by Node's code: a clause about "it". `names` are those it is for, as Node writes them. */
export function certificateWords(code: string, names?: string): string {
  const words = CERTIFICATE.get(code) ?? `it could not be verified (${code.slice(0, WORDS_LENGTH_MAX)})`;
  const hosts = [...(names ?? "").matchAll(/DNS:([^,\s]+)/g)].map(([, name]) => name);
  if (words !== CERTIFICATE.get("HOSTNAME_MISMATCH") || hosts.length === 0) return words;
  return `${words} (${hosts.join(", ").slice(0, WORDS_LENGTH_MAX)})`;
}
