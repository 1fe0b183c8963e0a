// Names and addresses that lead no further than this machine (RFC 6761 §6.3).

/** Whether a name or address in a setting is this machine itself. */
export function isLocal(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost") || /^(127\.|\[?::1\]?$)/.test(host);
}
