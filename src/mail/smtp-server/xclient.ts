// What the door's nginx says of its client (cells/nginx.ts) in Postfix's XCLIENT (its XCLIENT_README): the PROXY protocol that it speaks
// has no word for TLS. nginx puts into LOGIN what the door answered as the user, which mail at the MX has none of. Pure. Not here: ADDR
// and NAME; the address came in the PROXY header.

const MARK = "tls:";

/** The user that the door answers: `tls:TLSv1.3/TLS_AES_256_GCM_SHA384`. What nginx does not say is left out. */
export function doorTlsWord(protocol: string | undefined, cipher: string | undefined): string {
  const known = [protocol, cipher].map((word) => word?.replace(/[^\w.-]/g, "") ?? "").filter((word) => word !== "");
  return MARK + (known.join("/") || "TLS");
}

/** What comes behind the verb: `ADDR=… LOGIN=tls:… NAME=…`; null: the client speaks without TLS. As `ServerWire.tls` has it. */
export function readDoorTls(rest: string): string | null {
  const [, word] = /(?:^| )LOGIN=tls:([\w./-]{1,100})(?: |$)/i.exec(rest) ?? [];
  return word?.replace("/", " ") ?? null;
}
