// DMARC reports that came elsewhere, uploaded one after the other: what became of each stands beside its name.
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Declined, type Schemas, v1 } from "../../api/client.ts";
import { sayError } from "../../api/say-error.ts";
import { saySize } from "../../lib/times.ts";
import type { Tone } from "../../lib/why.ts";
import { DropZone } from "../../ui/drop-zone.tsx";
import { Tag } from "../../ui/tag.tsx";

const BYTES_MAX = 25 * 1024 * 1024;
type Said = { tone: Tone; word: string; text: string };
type Outcome = Said & { file: string; number: number };

export function UploadReports({ domain }: { domain: string }) {
  const queries = useQueryClient();
  const [reading, read] = useState<string | null>(null);
  const [outcomes, add] = useState<Outcome[]>([]);
  const take = async (files: File[]) => {
    for (const file of files) {
      read(file.name);
      const said = await upload(file, domain);
      add((before) => [{ ...said, file: file.name, number: before.length }, ...before]);
    }
    read(null);
    await queries.invalidateQueries({ queryKey: ["domain"] });
  };
  return (
    <div className="pad grid gap-4">
      <DropZone
        say={reading === null ? "Drop reports here, or choose them" : `Reading ${reading}…`}
        help="Aggregate reports as receivers mail them: XML, gzip or ZIP, at most 26 MB each. No report is counted twice."
        accept=".xml,.gz,.zip,text/xml,application/xml,application/gzip,application/zip"
        busy={reading !== null}
        several
        take={(files) => void take(files)}
      />
      <ul aria-label="Result for each file, newest first" aria-live="polite" className="grid gap-2">
        {outcomes.map(({ number, file, tone, word, text }) => (
          <li key={number} className="flex flex-wrap items-baseline gap-x-3 gap-y-1">
            <Tag tone={tone}>{word}</Tag>
            <b className="max-w-full truncate font-semibold">{file}</b>
            <span className="text-ink-2">{text}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

async function upload(file: File, domain: string): Promise<Said> {
  if (file.size > BYTES_MAX) return { tone: "bad", word: "Too large", text: `It has ${saySize(file.size)}.` };
  const form = new FormData();
  form.set("file", file);
  try {
    const { data, error, response } = await v1.POST("/v1/dmarc/reports", { body: form as never });
    if (data === undefined) throw new Declined(response.status, error);
    return sayReport(data.report, { isNew: response.status === 201, domain });
  } catch (cause) {
    const { title, text } = sayError(cause instanceof Declined ? cause : new Declined(0, { error: String(cause) }));
    const isRefused = cause instanceof Declined && cause.body.field === "file";
    return { tone: "bad", word: "Not counted", text: isRefused ? text : `${title}. ${text}` };
  }
}

function sayReport(report: Schemas["DmarcReport"], { isNew, domain }: { isNew: boolean; domain: string }): Said {
  const { org_name, total_messages, policy_domain, status } = report;
  const about = policy_domain === null || policy_domain === domain ? "" : ` about ${policy_domain}`;
  const from = org_name === null ? "" : ` from ${org_name}`;
  const mails = `${total_messages.toLocaleString("en")} ${total_messages === 1 ? "mail" : "mails"}`;
  if (!isNew) return { tone: "idle", word: "Known", text: `A report${from}${about} that is here already.` };
  if (status !== "counted") return { tone: "warn", word: "Left out", text: report.reason ?? "It does not count." };
  return { tone: "good", word: "Counted", text: `${mails}${about}, reported${from}.` };
}
