// What a reader of a PDF sees, for the leak gate: the text of its pages in letters (fonts may number their glyphs in any way),
// what its links, notes and forms say, its properties, and the files in it; also behind an empty password. By pdf.js, which
// knows object streams, LZW and all the encodings of fonts. Its own streams and strings are searched besides
// (pdf-contents.ts), because a file may hold what no page shows.
import type { getDocumentProxy } from "unpdf";
import { GAP } from "./disguises.ts";

/** `files` are attached to the document. `why`: what kept it from being read; null when all of it was. */
export type PdfPages = { texts: string[]; files: Buffer[]; why: string | null };

const PAGES_MAX = 300;
const TEXT_MAX = 10_000_000;
const OPTIONS = { verbosity: 0, isEvalSupported: false, disableFontFace: true, useSystemFonts: false };

type Document = Awaited<ReturnType<typeof getDocumentProxy>>;

/** Never throws for what the file holds. */
export async function readPdf(file: Buffer): Promise<PdfPages> {
  const read: PdfPages = { texts: [], files: [], why: null };
  let pdf: Document | null = null;
  try {
    // Few replies hold one, and it takes a while to load. It keeps what it gets.
    const reader = await import("unpdf");
    pdf = await reader.getDocumentProxy(new Uint8Array(file), OPTIONS);
    await readAll(pdf, read);
  } catch (error) {
    const isLocked = error instanceof Error && error.name === "PasswordException";
    read.why = isLocked ? "it is under a password" : "it is damaged";
  } finally {
    await pdf?.loadingTask.destroy();
  }
  return read;
}

async function readAll(pdf: Document, read: PdfPages): Promise<void> {
  const [about, outline, attachments] = [await pdf.getMetadata(), await pdf.getOutline(), await pdf.getAttachments()];
  read.texts.push(stringsIn([about.info, about.metadata?.getRaw() ?? "", outline, await pdf.getJSActions()]));
  for (const { filename, content } of Object.values(attachments ?? {}) as { filename: string; content: Uint8Array }[]) {
    read.texts.push(filename);
    if (content) read.files.push(Buffer.from(content));
  }
  let chars = 0;
  for (let number = 1; number <= pdf.numPages; number += 1) {
    if (number > PAGES_MAX || chars > TEXT_MAX) {
      read.why = "it has too many pages";
      return;
    }
    const page = await pdf.getPage(number);
    const { items } = await page.getTextContent();
    const pieces = items.map((item) => ("str" in item ? `${item.str}${item.hasEOL ? "\n" : GAP}` : ""));
    read.texts.push(pieces.join(""), stringsIn(await page.getAnnotations()));
    chars += pieces.reduce((sum, piece) => sum + piece.length, 0);
    page.cleanup();
  }
}

const DEPTH_MAX = 12;

/** Every string in it, apart from each other. */
function stringsIn(given: unknown): string {
  const found: string[] = [];
  const collect = (value: unknown, depth: number): void => {
    if (typeof value === "string") found.push(value);
    else if (value !== null && typeof value === "object" && depth < DEPTH_MAX && !ArrayBuffer.isView(value)) {
      for (const one of value instanceof Map ? value.values() : Object.values(value)) collect(one, depth + 1);
    }
  };
  collect(given, 0);
  return found.join("\n");
}
