// Names that people take for the voice of a service (RFC 2142): no alias of the service's own domain is called so, and none that
// a pattern makes.
const RESERVED = new Set(
  "abuse admin administrator bounce bounces hostmaster info mailer-daemon no-reply noreply postmaster root security support webmaster".split(
    " ",
  ),
);

/** True for a reserved local part, given in lower case. */
export function isReservedLocal(local: string): boolean {
  return RESERVED.has(local);
}
