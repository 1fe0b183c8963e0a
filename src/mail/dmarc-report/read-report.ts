// One file as it came, in whatever packing → the report in it: a DMARC aggregate report (XML) or an SMTP TLS report (JSON),
// recognised by the first byte inside. Nothing a stranger's file holds throws.
import { parseTlsReport, TLS_REPORT_BYTES_MAX, type TlsReport } from "../tls-report/read-report.ts";
import { createReportBuilder } from "./build-report.ts";
import type { AggregateReport } from "./types.ts";
import { type Allowance, UNPACKED_BYTES_MAX, unpack } from "./unpack.ts";
import { createXmlReader } from "./xml-leaves.ts";

export type ReadReport =
  | { kind: "aggregate"; report: AggregateReport }
  | { kind: "tls"; report: TlsReport }
  | { kind: "refused"; reason: string };

type Consumer = { write(bytes: Buffer): string | null; end(): ReadReport };

/**
 * Reads a packed or plain report of at most 25 MiB, 100 MiB (or what is left of `allowance`) unpacked; `refused` says in a
 * sentence what is wrong with it.
 */
export async function readReport(
  packed: Buffer,
  allowance: Allowance = { bytes_left: UNPACKED_BYTES_MAX },
): Promise<ReadReport> {
  let consumer: Consumer | null = null;
  const reason = await unpack(packed, allowance, (piece) => {
    consumer ??= consumerFor(piece);
    return consumer === null ? "this is neither an XML nor a JSON report" : consumer.write(piece);
  });
  if (reason !== null) return { kind: "refused", reason };
  return (consumer as Consumer | null)?.end() ?? { kind: "refused", reason: "the file is empty" };
}

/** By the first byte that is neither a byte order mark, a zero (of UTF-16) nor white space. */
function consumerFor(first: Buffer): Consumer | null {
  const mark = first.find((byte) => ![0xef, 0xbb, 0xbf, 0xfe, 0xff, 0x00, 0x20, 0x09, 0x0a, 0x0d].includes(byte));
  if (mark === 0x3c) return aggregateConsumer();
  return mark === 0x7b ? tlsConsumer() : null;
}

function aggregateConsumer(): Consumer {
  const builder = createReportBuilder();
  const reader = createXmlReader(builder);
  return {
    write: reader.write,
    end() {
      const refused = reader.end();
      const report = refused ?? builder.finish(reader.seen());
      return typeof report === "string" ? { kind: "refused", reason: report } : { kind: "aggregate", report };
    },
  };
}

function tlsConsumer(): Consumer {
  const pieces: Buffer[] = [];
  let bytes = 0;
  return {
    write(piece) {
      bytes += piece.length;
      if (bytes > TLS_REPORT_BYTES_MAX) return "the TLS report is larger than 5 MiB";
      pieces.push(Buffer.from(piece));
      return null;
    },
    end() {
      const parsed = parseTlsReport(Buffer.concat(pieces).toString("utf8"));
      return typeof parsed === "string" ? { kind: "refused", reason: parsed } : { kind: "tls", report: parsed };
    },
  };
}
