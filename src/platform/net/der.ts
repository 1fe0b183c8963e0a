// DER (X.690), as far as our own certificates and requests need it: Node reads X.509 and has no writer. Not here: reading.

/** A value with this tag; `parts` one after another. */
export function tagged(tag: number, ...parts: Buffer[]): Buffer {
  const value = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag, ...lengthBytes(value.length)]), value]);
}

function lengthBytes(length: number): number[] {
  if (length < 0x80) return [length];
  return length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
}

/** SEQUENCE. */
export function sequence(...parts: Buffer[]): Buffer {
  return tagged(0x30, ...parts);
}

/** INTEGER, from its bytes. */
export function integer(bytes: Buffer): Buffer {
  return tagged(0x02, bytes);
}

/** BIT STRING of whole bytes. */
export function bitString(bytes: Buffer): Buffer {
  return tagged(0x03, Buffer.from([0]), bytes);
}

/** OBJECT IDENTIFIER, from its numbers with dots. */
export function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split(".").map(Number);
  return tagged(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

function base128(value: number): number[] {
  const bytes = [value & 0x7f];
  for (let rest = value >> 7; rest > 0; rest >>= 7) bytes.unshift((rest & 0x7f) | 0x80);
  return bytes;
}

/** GeneralizedTime, to the second. */
export function time(ms: number): Buffer {
  const text = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, "");
  return tagged(0x18, Buffer.from(text));
}

/** An extension of X.509 (RFC 5280 §4.1.2.9). */
export function extension(id: string, value: Buffer): Buffer {
  return sequence(oid(id), tagged(0x04, value));
}

/** subjectAltName: DNS names (RFC 5280 §4.2.1.6). */
export function alternativeNames(hosts: readonly string[]): Buffer {
  return extension("2.5.29.17", sequence(...hosts.map((host) => tagged(0x82, Buffer.from(host, "ascii")))));
}

/** PEM (RFC 7468) with this label. */
export function pem(label: string, der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}
