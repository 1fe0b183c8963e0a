// Masked addresses: aliases that forward to real mailboxes without showing them, and replies that leave from the alias.
// Face of the feature: what app.ts wires and what features to the right may ask.
export { maskedAddresses } from "./aliases.ts";
export { maskedCheck, maskedDecider, withActivity } from "./arrival.ts";
export type { CarryPorts } from "./carry.ts";
export { forwardHandler } from "./forwarding.ts";
export { anyMaskedAlias, hasMaskedAliases } from "./queries.ts";
export { replyHandler } from "./replying.ts";
export { maskedReturnPath } from "./return-path.ts";
export { withMaskedKey } from "./service-domain.ts";
export type { TracePorts } from "./settling.ts";
