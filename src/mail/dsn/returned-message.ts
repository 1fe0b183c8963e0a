// What a report returns of the message that was sent: its head, Message-ID and our own token. RFC 3462 (rfc822 and
// rfc822-headers), RFC 6533 §4 (global), or behind a banner in the text. The token is only found here, not verified.

import { type Header, headerValues, splitMessage } from "../mime/parse-head.ts";
import { decodeBody } from "./body-text.ts";
import type { Part } from "./parts.ts";
import { storable } from "./status-fields.ts";
import type { OriginalMessage, ReturnedHeader } from "./types.ts";

const returnedHeadersMax = 200;

/** Types of parts that hold a returned message or its head. */
export function isReturnedMessage(type: string): boolean {
  return /^(?:message\/(?:rfc822|global|partial|news|x-rfc822|rfc822-headers)|text\/rfc822-headers?|message\/global-headers)$/.test(
    type,
  );
}

/**
 * Reads the returned message. `parts` are those of the report, `returned` is the text behind its banner, `texts` are
 * searched for the token when no head has it, `fallbackIds` for the Message-ID (In-Reply-To of the report).
 */
export function readReturnedMessage(
  parts: readonly Part[],
  returned: string,
  texts: readonly string[],
  fallbackIds: readonly string[],
): OriginalMessage {
  const headers = returnedHead(parts, returned);
  const listed = headers.slice(0, returnedHeadersMax).map(toReturned);
  const inHead = headerValues(headers, "message-id").map(messageId).find(isPresent);
  const id = inHead ?? idInTexts([...texts, ...returnedTexts(parts)], fallbackIds);
  const token = headerValues(headers, "x-postern-id").map(tokenIn).find(isPresent);
  return {
    message_id: id ?? null,
    headers: listed,
    x_postern_id: token ?? tokenInTexts([...texts, ...returnedTexts(parts)]),
  };
}

function returnedHead(parts: readonly Part[], returned: string): Header[] {
  for (const part of parts) {
    if (!isReturnedMessage(part.type)) continue;
    const { headers } = splitMessage(trimStart(decodeBody(part)));
    if (headers.length > 0) return headers;
  }
  return headInText(returned);
}

function trimStart(bytes: Buffer): Buffer {
  let start = 0;
  while (start < bytes.length && (bytes[start] === 0x0a || bytes[start] === 0x20 || bytes[start] === 0x0d)) start++;
  return bytes.subarray(start);
}

// Behind its banner a head may be indented as a whole (fml), and follow a few lines of words.
function headInText(returned: string): Header[] {
  const lines = returned.split("\n").slice(0, 1_000);
  const start = lines.findIndex((line) => /^\s{0,8}[A-Za-z][A-Za-z0-9-]{1,60}\s?:/.test(line));
  if (start === -1) return [];
  const indent = /^\s*/.exec(lines[start]!)![0].length;
  const head = lines.slice(start).map((line) => (line.slice(0, indent).trim() === "" ? line.slice(indent) : line));
  return splitMessage(Buffer.from(head.join("\n"))).headers;
}

function toReturned(header: Header): ReturnedHeader {
  return { name: header.name, value: storable(header.value) };
}

/** A Message-ID without its angle brackets; null when the value holds none. */
function messageId(value: string): string | null {
  const text = value.slice(0, 1_000);
  const id =
    /<([^<>\s\p{Cc}\p{Cs}]{1,500})>/u.exec(text)?.[1] ??
    /^\s*([^\s<>@\p{Cc}\p{Cs}]{1,250}@[^\s<>\p{Cc}\p{Cs}]{1,250})/u.exec(text)?.[1];
  return id ?? null;
}

const tokenForm = /([A-Za-z0-9._+=/-]{1,200})/;

function tokenIn(value: string): string | null {
  return tokenForm.exec(value)?.[1] ?? null;
}

const tokenLine = /^[ \t>|]{0,20}x-postern-id\s?:\s{0,80}([A-Za-z0-9._+=/-]{1,200})/im;

function tokenInTexts(texts: readonly string[]): string | null {
  for (const text of texts) {
    const token = tokenLine.exec(text)?.[1];
    if (token !== undefined) return token;
  }
  return null;
}

// Also behind an empty line that has no business in a head.
function returnedTexts(parts: readonly Part[]): string[] {
  return parts.filter((part) => isReturnedMessage(part.type)).map((part) => decodeBody(part).toString("latin1"));
}

const idLine = /^[ \t>|]{0,20}(?:original-|x-original-)?message-id\s?:\s{0,80}(<[^<>\s]{1,500}>)/im;

function idInTexts(texts: readonly string[], fallbackIds: readonly string[]): string | null {
  const found = texts.map((text) => idLine.exec(text)?.[1]).find((id) => id !== undefined);
  return (found === undefined ? null : messageId(found)) ?? fallbackIds.map(messageId).find(isPresent) ?? null;
}

function isPresent(text: string | null): text is string {
  return text !== null;
}
