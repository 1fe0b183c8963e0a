// Every form under which a hidden mailbox is looked for, in what its owner writes and in what a contact sends: both must be
// read alike, or what comes back tells which it was.
import { hash } from "node:crypto";
import { domainOf } from "../../mail/address.ts";
import type { Replacement } from "./scrub/replace-addresses.ts";
import { shownReplacements } from "./scrub/shown-address.ts";
import { spellings } from "./spellings.ts";

/** `seen` are the recipients, as in spellings.ts. A form that stands for nothing (`to` is "") only decorates another. */
export function hiddenForms(hidden: readonly Replacement[], seen: readonly string[]): Replacement[] {
  const known = hidden.flatMap((one) => spellings(one, seen));
  // The owner's mailboxes are shown to each other as contacts are, and quoted so.
  const forms = known.flatMap((one) => [one, forwarded(one), asFolder(one), ...shownReplacements(one.from, one.to)]);
  return [...forms, ...hidden.flatMap(hashed)];
}

/** As addresses of people's pictures hold it (Gravatar): the hash confirms a guess of the mailbox. */
function hashed({ from, to }: Replacement): Replacement[] {
  const hashOf = (name: string, email: string) => hash(name, email.trim().toLowerCase());
  return ["md5", "sha1", "sha256"].map((name) => ({ from: hashOf(name, from), to: hashOf(name, to) }));
}

/** As OneDrive and SharePoint name the folder of a person. */
function asFolder({ from, to }: Replacement): Replacement {
  const folder = (email: string) => email.replace(/[^\p{L}\p{N}-]/gu, "_");
  return { from: folder(from), to: folder(to) };
}

/** As the addresses of those who forward hold it (SRS): the domain first. */
function forwarded({ from, to }: Replacement): Replacement {
  const turned = (email: string) => `${domainOf(email)}=${email.slice(0, email.lastIndexOf("@"))}`;
  return { from: turned(from), to: turned(to) };
}
