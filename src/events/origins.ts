// Whose mail a message is: what a customer sent with a key or a login, or what the service made out of mail that came in.
// One list, so that statistics, webhooks and feedback addresses agree.

/** Made by us: a forward of received mail, mail through a masked address, our own notices. */
const SERVICE_ORIGINS = new Set(["forward", "masked", "system", "tls_report"]);

/** True if a customer sent it: only such mail is counted, announced to webhooks and judged by warming. */
export function isSentByCustomer({ origin }: { origin?: string }): boolean {
  return !SERVICE_ORIGINS.has(origin ?? "api");
}
