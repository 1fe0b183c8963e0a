// From the bytes of an exported list to text: UTF-8 with and without BOM, UTF-16 in both orders with and without BOM,
// and the one-byte sets that spreadsheets write. It does not split lines or fields.
//
// One-byte files pass as latin1 (every byte one character), because separators, quotes and line ends are ASCII in UTF-8
// and in windows-1252 alike; `field` then reads a field's bytes as UTF-8 where they are UTF-8, else as windows-1252. So
// no pass over the whole file is needed, and files pasted together from both are read right.

export type TextSource = {
  encoding: "utf-8" | "utf-16le" | "utf-16be";
  /** The characters of the next bytes; a character cut in two waits for its rest. */
  text(bytes: Buffer): string;
  /** What waited when the bytes end. */
  end(): string;
  /** The final reading of one field of that text. */
  field(raw: string): string;
};

/** Bytes that `openText` wants to see to tell encodings apart (fewer when the file is shorter). */
export const HEAD_BYTES = 1_024;

const highByte = /[\x80-\xff]/;

/** Chooses the encoding from the first bytes of a file. Never fails: what is nothing else is a one-byte file. */
export function openText(head: Buffer): TextSource {
  if (head[0] === 0xff && head[1] === 0xfe) return utf16("utf-16le");
  if (head[0] === 0xfe && head[1] === 0xff) return utf16("utf-16be");
  const byZeros = zeroPattern(head.subarray(0, HEAD_BYTES));
  return byZeros ? utf16(byZeros) : oneByte();
}

// Latin text in UTF-16 without BOM has a zero in every second byte; a one-byte file has none at all, or a stray one.
function zeroPattern(head: Buffer): "utf-16le" | "utf-16be" | null {
  const zeros = [0, 0];
  for (const [index, byte] of head.entries()) {
    if (byte === 0) zeros[index % 2]! += 1;
  }
  const pairs = Math.floor(head.length / 2);
  if (pairs < 4) return null;
  if (zeros[1]! > pairs * 0.6 && zeros[0]! < pairs * 0.1) return "utf-16le";
  if (zeros[0]! > pairs * 0.6 && zeros[1]! < pairs * 0.1) return "utf-16be";
  return null;
}

function utf16(encoding: "utf-16le" | "utf-16be"): TextSource {
  const decoder = new TextDecoder(encoding);
  return {
    encoding,
    text: (bytes) => decoder.decode(bytes, { stream: true }),
    end: () => decoder.decode(),
    field: (raw) => raw,
  };
}

function oneByte(): TextSource {
  const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const windows1252 = new TextDecoder("windows-1252");
  let first = true;
  return {
    encoding: "utf-8",
    text(bytes) {
      const text = bytes.toString("latin1");
      if (!first) return text;
      first = false;
      return text.startsWith("\u00ef\u00bb\u00bf") ? text.slice(3) : text;
    },
    end: () => "",
    field(raw) {
      if (!highByte.test(raw)) return raw;
      const bytes = Buffer.from(raw, "latin1");
      try {
        return utf8.decode(bytes);
      } catch {
        return windows1252.decode(bytes);
      }
    },
  };
}
