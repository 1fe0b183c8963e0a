// Names of files in a mail on its way to a real mailbox: a contact may write a guess there, too, and a program hands the file
// on under its name. So the mailbox in them becomes a token (sent-content.ts), in all the forms that a name is written in.
import { safeFilename } from "../../../mail/mime/filename.ts";
import { readableValue } from "../../../mail/mime/header-text.ts";
import type { Header } from "../../../mail/mime/parse-head.ts";
import { defaultParseLimits } from "../../../mail/mime/parse-message.ts";
import { parseParameters } from "../../../mail/mime/parse-parameters.ts";
import { type Part, parseStructure } from "../../../mail/mime/parse-structure.ts";
import { fileHeader } from "../../../mail/mime/part-headers.ts";
import { oneLine } from "../header-fields.ts";
import type { ContentHider } from "../sent/sent-content.ts";

const NAMING: Readonly<Record<string, string>> = { "content-type": "name", "content-disposition": "filename" };
const VALUE = /^[\x21-\x7e]{1,200}$/;

/** The mail with tokens in the names of its files; the same bytes where no name holds the mailbox. Attached mails stay. */
export function hideFileNames(bytes: Buffer, hider: ContentHider): Buffer {
  const { root } = parseStructure(bytes, defaultParseLimits);
  const pieces: Buffer[] = [];
  let end = 0;
  for (const { raw, field } of partsOf(root).flatMap((part) => hiddenFields(part, hider))) {
    const start = raw.byteOffset - bytes.byteOffset;
    pieces.push(bytes.subarray(end, start), Buffer.from(field));
    end = start + raw.length;
  }
  return pieces.length === 0 ? bytes : Buffer.concat([...pieces, bytes.subarray(end)]);
}

/** In the order of the bytes. */
function partsOf(part: Part): Part[] {
  return [part, ...(part.children ?? []).flatMap(partsOf)];
}

function hiddenFields({ headers }: Part, hider: ContentHider): { raw: Buffer; field: string }[] {
  return headers.flatMap(({ name, value, raw }: Header) => {
    const naming = NAMING[name.toLowerCase()];
    if (naming === undefined) return [];
    const { value: kind, parameters } = parseParameters(value);
    const given = readableValue(parameters.get(naming) ?? "");
    if (given === "") return [];
    const hidden = hider.name(safeFilename(given));
    if (hidden.count === 0) return [];
    const others = [...parameters].filter(
      ([key, text]) => key !== naming && /^[a-z-]{1,30}$/.test(key) && VALUE.test(text),
    );
    const start = others.reduce(
      (field, [key, text]) => `${field};\r\n ${key}="${text.replace(/["\\]/g, "\\$&")}"`,
      `${name}: ${VALUE.test(kind) ? kind : "application/octet-stream"}`,
    );
    return [{ raw, field: fileHeader(start, naming, oneLine(hidden.text)) }];
  });
}
