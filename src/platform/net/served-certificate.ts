// How long the certificate that our servers show is valid, as metrics.
import type { Metrics } from "../process/metrics.ts";

export type ServedCertificate = { not_before: Date; not_after: Date };

/** Both ends, so that an alert can be a share of the life: certificates live from six days to a year. */
export function showCertificate(metrics: Metrics, { not_before, not_after }: ServedCertificate): void {
  metrics
    .gauge("postern_certificate_not_before_timestamp_seconds", "When the certificate in use began to be valid")
    .set(not_before.getTime() / 1_000);
  metrics
    .gauge("postern_certificate_not_after_timestamp_seconds", "When the certificate in use ends")
    .set(not_after.getTime() / 1_000);
}
