// Masked addresses: aliases that forward to real mailboxes without showing them, and replies that leave from the alias.
// Face of the feature: what app.ts wires and what features to the right may ask.
export { SEALED_TEXTS } from "./addresses/addresses.ts";
export { maskedAddresses } from "./addresses/aliases.ts";
export { erasePerson, exportPerson } from "./addresses/people.ts";
export { MaskedPerson, MaskedPersonErased } from "./addresses/people-routes.ts";
export { SEALED_KEY, withMaskedKey } from "./addresses/service-domain.ts";
export { serviceMailer } from "./addresses/service-mail.ts";
export { maskedCheck, maskedDecider, withActivity } from "./arrive/arrival.ts";
export type { CarryPorts } from "./carry/carry.ts";
export { forwardHandler } from "./carry/forwarding.ts";
export { replyHandler } from "./carry/replying.ts";
export { SEALED_REPLIES } from "./held/held.ts";
export { organizationOfLink } from "./link-owner.ts";
export { organizationOfMasked } from "./lookups.ts";
export { aliasMaker } from "./patterns/make-aliases.ts";
export { patternDecider } from "./patterns/pattern-decider.ts";
export { anyMaskedAlias, findMaskedKey, hasAliasesAt, hasMaskedAliases } from "./queries.ts";
export type { TracePorts } from "./settle/ports.ts";
export { maskedReturnPath } from "./settle/return-path.ts";
