// Reads a backup from its first byte to its last and hands each part over. What was counted when it was written is compared on
// the way; a backup whose last frame is missing is refused.
import { createHash } from "node:crypto";
import {
  BackupBroken,
  type BackupEnd,
  type BackupHead,
  type BodyEnd,
  type BodyHead,
  contentOf,
  type Frame,
  readFrames,
  type TableEnd,
  type TableHead,
} from "./frames.ts";
import { createRowChecksum } from "./row-checksum.ts";

/** `rows` and `body` are there to be read to their end before the next part is asked for. */
export type Taking<Head = BackupHead, Table extends TableHead = TableHead> = {
  head(head: Head): Promise<void>;
  table(head: Table, rows: AsyncIterable<Buffer>): Promise<void>;
  body(key: string, bytes: Buffer): Promise<void>;
};

const OTHER_FORMATS: Record<string, string> = {
  "1": "this is a backup of a whole database, not an organization that moves: postern restore reads it",
  "organization-1": "this is an organization that moves, not a backup: postern organizations import reads it",
};

export type ReadTable = TableHead & TableEnd;

/** Answers what the backup says of itself at its end, with its tables as they were counted. */
export function takeBackup(
  bytes: AsyncIterable<Buffer>,
  taking: Taking,
): Promise<{ head: BackupHead; end: BackupEnd; tables: ReadTable[] }> {
  return takeFrames<BackupHead, TableHead, BackupEnd>(bytes, 1, taking);
}

/** The same of any stream of such frames whose head says this format. */
export async function takeFrames<Head extends { format: number | string }, Table extends TableHead, End>(
  bytes: AsyncIterable<Buffer>,
  format: Head["format"],
  taking: Taking<Head, Table>,
): Promise<{ head: Head; end: End; tables: (Table & TableEnd)[] }> {
  const frames = readFrames(bytes);
  const next = async (): Promise<Frame> => {
    const { value, done } = await frames.next();
    if (done) throw new BackupBroken("the backup is cut short");
    return value;
  };
  const first = await next();
  const head = first.type === "H" ? contentOf<Head>(first) : null;
  if (head?.format !== format)
    throw new BackupBroken(OTHER_FORMATS[String(head?.format)] ?? "this is not a backup that this Postern can read");
  await taking.head(head);
  const tables: (Table & TableEnd)[] = [];
  for (;;) {
    const part = await next();
    if (part.type === "T") tables.push(await takeTable(part, next, taking));
    else if (part.type === "B") await takeBody(part, next, taking);
    else if (part.type === "Z") return { head, end: contentOf<End>(part), tables };
    else throw new BackupBroken("the backup is damaged: its parts are not in order");
  }
}

async function takeTable<Table extends TableHead>(
  part: Frame,
  next: () => Promise<Frame>,
  taking: Pick<Taking<never, Table>, "table">,
): Promise<Table & TableEnd> {
  const head = contentOf<Table>(part);
  const counted = createRowChecksum();
  let said: TableEnd | null = null;
  async function* rows(): AsyncGenerator<Buffer> {
    for (let piece = await next(); ; piece = await next()) {
      if (piece.type === "E") {
        said = contentOf<TableEnd>(piece);
        return;
      }
      counted.add(piece.bytes);
      yield piece.bytes;
    }
  }
  await taking.table(head, rows());
  const found = counted.end();
  const end = said as TableEnd | null;
  if (end?.checksum !== found.checksum || end.rows !== found.rows) {
    throw new BackupBroken(`the backup is damaged: the rows of ${head.table} are not those that were written`);
  }
  return { ...head, ...end };
}

async function takeBody(part: Frame, next: () => Promise<Frame>, taking: Pick<Taking, "body">): Promise<void> {
  const { key } = contentOf<BodyHead>(part);
  const pieces: Buffer[] = [];
  let piece = await next();
  for (; piece.type === "D"; piece = await next()) pieces.push(piece.bytes);
  const bytes = Buffer.concat(pieces);
  const isWhole = piece.type === "E" && contentOf<BodyEnd>(piece).bytes === bytes.length;
  if (!isWhole || createHash("sha256").update(bytes).digest("hex") !== key) {
    throw new BackupBroken(`the backup is damaged: body ${key} is not the one that was written`);
  }
  await taking.body(key, bytes);
}
