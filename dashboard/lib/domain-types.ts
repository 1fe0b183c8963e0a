// What a domain is for, and what another type changes: the records that DNS must show, and what becomes of its mail. Pure.
import type { Schemas } from "../api/client.ts";

type Type = Schemas["DomainType"];

export const USES: Record<Type, string> = {
  outbound: "Sending",
  both: "Sending and receiving",
  inbound: "Receiving",
  alias: "Masked addresses",
};

export const TYPES = Object.keys(USES) as Type[];

export function sendsMail(type: Type): boolean {
  return type === "outbound" || type === "both";
}

export function receivesMail(type: Type): boolean {
  return type !== "outbound";
}

/** Sentences for the person who is about to change it. `verified`: the domain is now. */
export function sayTypeChange({ type, verified }: Pick<Schemas["Domain"], "type" | "verified">, to: Type): string[] {
  const begins = (does: (one: Type) => boolean) => !does(type) && does(to);
  const stops = (does: (one: Type) => boolean) => does(type) && !does(to);
  const said: string[] = [];
  if (begins(sendsMail)) said.push("It needs an SPF and a DKIM record. It can send once DNS shows both.");
  if (begins(receivesMail)) {
    said.push(
      "It needs our MX record. Once you publish it, all mail to this domain comes here, and no longer to where it goes today.",
    );
    if (verified && sendsMail(type) && sendsMail(to))
      said.push("It goes on sending for 72 hours. If DNS does not show the MX record by then, it stops sending.");
  }
  if (stops(sendsMail)) said.push("Nothing can be sent from it any more. It no longer needs SPF and DKIM records.");
  if (stops(receivesMail))
    said.push("Mail to it is refused. Point its MX record elsewhere first if it should go on receiving.");
  if (said.length === 0) said.push("It needs the same records as before.");
  return said;
}
