// The entries of a ZIP archive with their packed bytes, for the leak gate. By the central directory, which programs show
// (yauzl, ZIP64 too), and every local header besides: readers that stream see those alone, so that an entry may hide there.
// APPNOTE.TXT 6.3.10 §4.3.
import { fromBuffer, type Entry as Listed, type ZipFile } from "yauzl";

/** `isListed`: programs show it; of what is not, only what can be unpacked is anything. */
export type ZipEntry = { name: string; method: number; encrypted: boolean; packed: Buffer; isListed: boolean };

/** `why`: what kept the archive from being listed; null when all of it was. */
export type ZipEntries = { entries: ZipEntry[]; why: string | null };

const LOCAL = Buffer.from([0x50, 0x4b, 0x03, 0x04]);
const LOCAL_OCTETS = 30;
const IS_ENCRYPTED = 1;

/** Never throws for what the file holds. */
export async function readZip(file: Buffer, entriesMax: number): Promise<ZipEntries> {
  const locals = localEntries(file, entriesMax);
  let zip: ZipFile | null = null;
  try {
    zip = await openZip(file);
    if (zip.entryCount > entriesMax) return { entries: locals, why: "it holds too many files" };
    const listed = await listEntries(zip);
    const seen = listed.map((entry) => ofListed(file, entry));
    const hidden = locals.filter(({ packed }) => !seen.some((one) => one.packed.byteOffset === packed.byteOffset));
    return { entries: [...seen, ...hidden], why: null };
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    // What local headers show is all that anybody can unpack of it.
    return { entries: locals, why: locals.length > 0 ? null : "it is damaged" };
  } finally {
    zip?.close();
  }
}

function ofListed(file: Buffer, entry: Listed): ZipEntry {
  const local = entry.relativeOffsetOfLocalHeader;
  const isThere = local + LOCAL_OCTETS <= file.length;
  const start = isThere ? local + LOCAL_OCTETS + file.readUInt16LE(local + 26) + file.readUInt16LE(local + 28) : 0;
  return {
    name: entry.fileNameRaw.toString("utf8"),
    method: entry.compressionMethod,
    encrypted: (entry.generalPurposeBitFlag & IS_ENCRYPTED) !== 0,
    packed: isThere ? file.subarray(start, start + entry.compressedSize) : Buffer.alloc(0),
    isListed: true,
  };
}

/** To the next local header or the end of the file, where the size is not known before. */
function localEntries(file: Buffer, entriesMax: number): ZipEntry[] {
  const entries: ZipEntry[] = [];
  for (let at = file.indexOf(LOCAL); at !== -1 && entries.length < entriesMax; at = file.indexOf(LOCAL, at + 4)) {
    if (at + LOCAL_OCTETS > file.length) break;
    const [flags, method] = [file.readUInt16LE(at + 6), file.readUInt16LE(at + 8)];
    const size = file.readUInt32LE(at + 18);
    const named = at + LOCAL_OCTETS + file.readUInt16LE(at + 26);
    const start = named + file.readUInt16LE(at + 28);
    if (start > file.length) continue;
    const isTold = size !== 0 && size !== 0xffffffff;
    if (method === 0 && !isTold) continue;
    entries.push({
      name: file.toString("utf8", at + LOCAL_OCTETS, named),
      method,
      encrypted: (flags & IS_ENCRYPTED) !== 0,
      packed: file.subarray(start, isTold ? start + size : file.length),
      isListed: false,
    });
  }
  return entries;
}

function openZip(file: Buffer): Promise<ZipFile> {
  return new Promise((resolve, reject) => {
    const options = { lazyEntries: true, decodeStrings: false, validateEntrySizes: false };
    fromBuffer(file, options, (error, zip) => (zip ? resolve(zip) : reject(error)));
  });
}

function listEntries(zip: ZipFile): Promise<Listed[]> {
  const entries: Listed[] = [];
  return new Promise((resolve, reject) => {
    zip.on("error", reject);
    zip.on("end", () => resolve(entries));
    zip.on("entry", (entry: Listed) => {
      entries.push(entry);
      zip.readEntry();
    });
    zip.readEntry();
  });
}
