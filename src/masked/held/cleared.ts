// What is kept and leaves later was searched by the gate for the mailboxes that its alias had when it was written. Of those that the
// alias has since nobody knew. Only these are searched for: the whole search again would hold replies in which a contact reads back
// what it wrote itself.
import { addressOf } from "../arrive/correspondents.ts";
import type { AliasContext } from "../lookups.ts";
import { findLeaks } from "../rewrite/gate/leak-gate.ts";
import { hiddenForms } from "../rewrite/hidden-forms.ts";

/** True if the mail shows a mailbox that the alias has had only since the mail was cleared. */
export function showsNewMailbox(
  { alias, destinations }: AliasContext,
  cleared: readonly string[],
  mime: Buffer,
): boolean {
  const added = destinations.filter(({ id }) => !cleared.includes(id));
  if (added.length === 0) return false;
  const hidden = added.map(({ email }) => ({ from: email, to: addressOf(alias) }));
  const addresses = hiddenForms(hidden, []).flatMap(({ from, to }) => (to === "" ? [] : from));
  return findLeaks(mime, { addresses, names: [], allowed: "nothing", given: [] }).length > 0;
}

/** All that a mail which leaves now was searched for. */
export function clearedNow({ destinations }: AliasContext, cleared: readonly string[]): string[] {
  return [...new Set([...cleared, ...destinations.map(({ id }) => id)])];
}
