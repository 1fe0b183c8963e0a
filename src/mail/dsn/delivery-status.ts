// message/delivery-status and message/global-delivery-status: RFC 3464, RFC 6533. One finding for each recipient, in
// order. Also finds such fields in readable text, where reports that know no MIME put them. Does not classify.

import { typedAddress } from "./address-text.ts";
import { type FieldGroup, fieldValue, readFieldGroups } from "./status-fields.ts";
import type { DsnAction, Finding } from "./types.ts";

export type DeliveryStatus = { reporting_mta: string | null; arrival_date: string | null; findings: Finding[] };

/** Reads a status part. Recipients without an address are kept (`email` null) when they say what happened. */
export function readDeliveryStatus(text: string): DeliveryStatus {
  const groups = joinTornGroups(readFieldGroups(text));
  // The fields of the message stand in the first group; some writers put them before or among those of a recipient.
  const all = (name: string) => groups.map((group) => fieldValue(group, name)).find((value) => value !== "") ?? "";
  return {
    reporting_mta: hostName(all("reporting-mta")),
    arrival_date: all("arrival-date") || null,
    findings: groups.filter(isRecipientGroup).map(readRecipient),
  };
}

/** Status fields inside a readable text; null when there are none that name a recipient. */
export function findStatusFields(text: string): DeliveryStatus | null {
  const start = /^[ \t]{0,8}(?:reporting-mta|final-recipient|original-recipient|action)[ \t]*:/im.exec(text);
  if (start === null) return null;
  const status = readDeliveryStatus(text.slice(start.index).replace(/^[ \t]{1,8}(?=[A-Za-z-]{4,40}:)/gm, ""));
  const findings = status.findings.filter((finding) => finding.email !== null);
  return findings.length === 0 ? null : { ...status, findings };
}

// An empty line between Final-Recipient and Action tears one recipient in two.
function joinTornGroups(groups: readonly FieldGroup[]): FieldGroup[] {
  const joined: FieldGroup[] = [];
  for (const group of groups) {
    const before = joined.at(-1);
    if (before === undefined || !isTorn(before) || group.has("final-recipient")) joined.push(new Map(group));
    else for (const [name, values] of group) before.set(name, [...(before.get(name) ?? []), ...values]);
  }
  return joined;
}

function isTorn(group: FieldGroup): boolean {
  return group.has("final-recipient") && !group.has("action") && !group.has("status");
}

function isRecipientGroup(group: FieldGroup): boolean {
  return (
    group.has("final-recipient") || group.has("original-recipient") || (group.has("action") && group.has("status"))
  );
}

function readRecipient(group: FieldGroup): Finding {
  const original = typedAddress(fieldValue(group, "original-recipient"));
  const final = typedAddress(fieldValue(group, "final-recipient"));
  const behind = fieldValue(group, "x-actual-recipient");
  const actual = typedAddress(behind);
  // A local name behind a source route ("@mx.example.com:user@server") is nobody's address.
  const email = (isQualified(final) ? final : null) ?? actual ?? original ?? final;
  return {
    email,
    original,
    action: readAction(fieldValue(group, "action")),
    status: readStatus(fieldValue(group, "status")),
    diagnostic: diagnosticText(group),
    isAboutAddress: /^bad-(?:mailbox|domain)/.test(
      fieldValue(group, "x-powermta-bouncecategory", "x-powermta-bouncecat"),
    ),
    // sendmail names the alias as Final-Recipient, and whom or what it stands for as X-Actual-Recipient.
    isExpanded: isProgram(behind) || [final, actual].some((other) => other !== null && !isSameMailbox(other, email)),
    text: "",
  };
}

// `X-Unix; |/home/user/bin/filter`: a program or a file.
function isProgram(value: string): boolean {
  return /^[^;]{0,40};\s{0,9}"?[|/]/.test(value);
}

// The same name at the same domain, at a host of it, or at no domain: "user@mx.example.com", "user@localhost".
function isSameMailbox(other: string, email: string | null): boolean {
  const [local, domain] = splitAddress(other);
  const [ownLocal, ownDomain] = splitAddress(email ?? "");
  if (local !== ownLocal) return false;
  return !domain.includes(".") || `.${domain}`.endsWith(`.${ownDomain}`) || `.${ownDomain}`.endsWith(`.${domain}`);
}

function splitAddress(address: string): [local: string, domain: string] {
  const at = address.lastIndexOf("@");
  return [address.slice(0, Math.max(0, at)).toLowerCase(), address.slice(at + 1).toLowerCase()];
}

function isQualified(address: string | null): boolean {
  return address?.slice(address.lastIndexOf("@")).includes(".") ?? false;
}

// RFC 3464 §2.3.3; seen in the wild: "failed (Bad destination mailbox address)", "failure", "delay".
function readAction(value: string): DsnAction | null {
  const word = /^[a-z]+/i.exec(value)?.[0].toLowerCase() ?? "";
  if (word.startsWith("fail")) return "failed";
  if (word.startsWith("delay")) return "delayed";
  if (word.startsWith("deliver")) return "delivered";
  if (word.startsWith("relay")) return "relayed";
  return word.startsWith("expand") ? "expanded" : null;
}

// RFC 3464 §2.3.4: a code, with a comment behind it.
function readStatus(value: string): string | null {
  return /^\s*([245]\.\d{1,3}\.\d{1,3})(?![.\d])/.exec(value)?.[1] ?? null;
}

// RFC 3464 §2.3.6. A Status field that holds words ("553 Exceeded maximum inbound message size") is diagnostic too.
function diagnosticText(group: FieldGroup): string {
  const values = group.get("diagnostic-code") ?? [];
  // X-Unix holds the exit status of a local program, which is no reply code.
  const texts = values.map((value) => value.replace(/^\s*(?:x-unix\s*;\s*\d*|[A-Za-z0-9-]{1,30}\s*;)\s*/i, "").trim());
  const said = texts.filter((text) => text !== "");
  const status = fieldValue(group, "status");
  const comment = readStatus(status) === null ? status : (/\(([^()]{3,300})\)/.exec(status)?.[1] ?? "");
  return said.length > 0 ? said.join(" ") : comment;
}

/** The name in a typed MTA field (`dns; mx.example.com (1.2.3.4)`), null when there is none. */
export function hostName(value: string): string | null {
  const text = value.slice(value.indexOf(";") + 1).trim();
  return /^[^\s()<>"]{1,255}/.exec(text)?.[0] ?? null;
}
