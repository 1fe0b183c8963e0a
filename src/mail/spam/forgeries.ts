// Signs in the head that a mail is not what it says: our own names in a stranger's mouth, fields that stand twice, letters of
// two scripts in one word. Pure. Each is weak by itself: contact forms, loops and old programs do one or the other honestly.
import ipaddr from "ipaddr.js";
import { domainOf } from "../address.ts";
import type { Session, Suspect, Symptom } from "./suspect.ts";

const DAY_MS = 86_400_000;
/** Clocks and time zones are wrong by hours, not by days. */
const AHEAD_MS_MAX = 2 * DAY_MS;
/** RFC 5322 §3.6: at most once. */
const SINGLE = ["from", "subject", "date", "message-id", "to", "reply-to"];
const RECEIVED_MAX = 50;

/** The signs in the head and in the session; without a session those of the head. */
export function findForgeries(suspect: Suspect): Symptom[] {
  const { session } = suspect;
  return [...(session === null ? [] : ofSession(suspect, session)), ...ofFields(suspect)];
}

function ofSession(suspect: Suspect, session: Session): Symptom[] {
  const found: Symptom[] = [];
  const { helo, remote_ip, host, recipients, received_ms } = session;
  if (remote_ip !== null && isPublic(remote_ip) && sameHost(helo, host)) {
    found.push({ name: "HELO_IS_US", score: 3, description: "The client calls itself by our name" });
  }
  if (isReceivedFromUs(suspect, host)) {
    found.push({ name: "RECEIVED_BY_US", score: 0.5, description: "Says that it was received here before" });
  }
  const ahead = suspect.date === null ? 0 : Date.parse(suspect.date) - received_ms;
  if (ahead > AHEAD_MS_MAX) found.push({ name: "DATE_AHEAD", score: 2, description: "Date is days ahead" });
  const idDomain = domainOf(suspect.message_id?.replace(/>.*$/, "") ?? "").toLowerCase();
  const isRecipients = recipients.some((email) => domainOf(email).toLowerCase() === idDomain);
  if (idDomain !== "" && isRecipients && isUnknown(suspect) && fromDomain(suspect) !== idDomain) {
    const description = "The Message-ID is of the recipient's domain, the author is not";
    found.push({ name: "MESSAGE_ID_OF_RECIPIENT", score: 0.5, description });
  }
  return found;
}

/** Neither SPF nor DKIM stands for anybody. */
function isUnknown({ auth }: Suspect): boolean {
  return auth !== null && auth.spf !== "pass" && auth.dkim !== "pass";
}

function fromDomain({ from }: Suspect): string {
  return domainOf(from[0]?.email ?? "").toLowerCase();
}

function isPublic(ip: string): boolean {
  return ipaddr.isValid(ip) && ipaddr.process(ip).range() === "unicast";
}

function sameHost(one: string, other: string): boolean {
  return one.toLowerCase().replace(/\.$/, "") === other.toLowerCase();
}

/** The first may be our own field. */
function isReceivedFromUs({ headers }: Suspect, host: string): boolean {
  const received = headers.filter(({ name }) => name.toLowerCase() === "received").slice(1, RECEIVED_MAX);
  return received.some(({ value }) => sameHost(/\bby\s+([^\s;()]{1,255})/i.exec(value)?.[1] ?? "", host));
}

function ofFields({ headers, subject, from }: Suspect): Symptom[] {
  const found: Symptom[] = [];
  const counts = new Map<string, number>();
  for (const { name } of headers) counts.set(name.toLowerCase(), (counts.get(name.toLowerCase()) ?? 0) + 1);
  const twice = SINGLE.filter((name) => (counts.get(name) ?? 0) > 1);
  if (twice.length > 0) {
    found.push({ name: "FIELD_TWICE", score: 1.5, description: `More than one field: ${twice.join(", ")}` });
  }
  if (hasMixedWord(`${subject?.slice(0, 1_000) ?? ""} ${from[0]?.name?.slice(0, 1_000) ?? ""}`)) {
    found.push({
      name: "MIXED_SCRIPTS",
      score: 2.5,
      description: "Letters of two scripts that look alike in one word",
    });
  }
  return found;
}

/** Cyrillic and Greek letters that look like Latin ones. */
const LOOKALIKES = /[аеорсухіѕјԁһӏԛԝАВЕКМНОРСТХІЅЈαονρυΑΒΕΖΗΙΚΜΝΟΡΤΥΧ]/gu;

/** "Pаypal": a Latin word of four letters or more whose other letters are all lookalikes. Not "SMSки", nor Russian words. */
function hasMixedWord(text: string): boolean {
  return (text.match(/\p{L}{4,60}/gu) ?? []).some((word) => {
    const plain = word.replace(LOOKALIKES, "");
    return plain !== word && plain.length >= 2 && /^\p{Script=Latin}+$/u.test(plain);
  });
}
