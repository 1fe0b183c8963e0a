// Types of dns-packet 5.6 (which ships none), as far as the resolver and the tests' name server use it.
declare module "dns-packet" {
  export type Question = { name: string; type: string; class?: string };
  export type Record = { name: string; type: string; class?: string; ttl?: number; data: unknown };
  export type Opt = {
    name: ".";
    type: "OPT";
    udpPayloadSize?: number;
    extendedRcode?: number;
    flags?: number;
    flag_do?: boolean;
  };
  export type Packet = {
    id?: number;
    type?: "query" | "response";
    flags?: number;
    questions?: Question[];
    answers?: Record[];
    authorities?: Record[];
    additionals?: (Record | Opt)[];
  };
  export type Decoded = Required<Packet> & { rcode: string; flag_rd: boolean; flag_tc: boolean; flag_ad: boolean };
  export function encode(packet: Packet): Buffer;
  export function decode(bytes: Buffer): Decoded;
  export const AUTHORITATIVE_ANSWER: number;
  export const TRUNCATED_RESPONSE: number;
  export const RECURSION_DESIRED: number;
  export const RECURSION_AVAILABLE: number;
  export const AUTHENTIC_DATA: number;
  export const DNSSEC_OK: number;
}
