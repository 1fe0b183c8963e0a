// A list of another provider as a file: dropped, read by the server, looked at, then added, with progress and a report. The job stands
// in the page's address, so that the page can be left and opened again.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type Schemas, take, v1 } from "../api/client.ts";
import { suppressionImport } from "../api/import-queries.ts";
import { fieldProblem, useAct } from "../lib/act.ts";
import { wordOf } from "../lib/states.ts";
import { sayCount, saySize } from "../lib/times.ts";
import { Button } from "../ui/button.tsx";
import { DropZone } from "../ui/drop-zone.tsx";
import { Field } from "../ui/field.tsx";
import { Problem } from "../ui/problem.tsx";
import { Loaded } from "../ui/states.tsx";

type Job = Schemas["SuppressionImport"];
type Provider = Job["provider"];
const PROVIDERS: readonly Provider[] = [
  ...(["sendgrid", "mailgun", "postmark", "resend", "ses", "mailchimp", "mandrill", "brevo", "sparkpost"] as const),
  "custom",
];
const ADDRESSES = { one: "address", many: "addresses" };
const BYTES_MAX = 25 * 1024 * 1024;

type DropGiven = { started: (id: string) => void };

export function DropFile({ started }: DropGiven) {
  const [provider, choose] = useState<Provider | "">("");
  const [tooLarge, setTooLarge] = useState<string | null>(null);
  const reading = useAct({
    run: (file: File) => take(v1.POST("/v1/imports/suppressions/preview", upload(file, provider))),
    refresh: [],
    done: ({ job }) => {
      started(job.id);
      return undefined;
    },
  });
  const read = (file: File | undefined) => {
    if (file === undefined) return;
    const isLarge = file.size > BYTES_MAX;
    setTooLarge(isLarge ? `${file.name} has ${saySize(file.size)}; a file may have 26 MB. Split it.` : null);
    if (!isLarge) reading.mutate(file);
  };
  const problem = tooLarge ?? fieldProblem(reading.error, "file") ?? fieldProblem(reading.error, "csv");
  return (
    <div className="panel pad grid gap-4">
      <DropZone
        say={reading.isPending ? "Reading the file…" : "Drop a CSV file here, or choose one"}
        help="As your provider exports it. Columns and provider are recognised; nothing is added before you have looked."
        accept=".csv,text/csv,text/plain"
        busy={reading.isPending}
        take={([file]) => read(file)}
      />
      {problem !== undefined && (
        <p role="alert" className="problem">
          {problem}
        </p>
      )}
      {problem === undefined && <Problem error={reading.error} />}
      <div className="max-w-[260px]">
        <Field label="Provider" help="If you choose none, it is recognised from the columns">
          {(bound) => (
            <select {...bound} value={provider} onChange={(event) => choose(event.target.value as Provider | "")}>
              <option value="">Recognise it</option>
              {PROVIDERS.map((name) => (
                <option key={name} value={name}>
                  {sayProvider(name)}
                </option>
              ))}
            </select>
          )}
        </Field>
      </div>
    </div>
  );
}

/** The file as it is, in a form: the server reads it while it comes. */
function upload(file: File, provider: Provider | "") {
  const form = new FormData();
  if (provider !== "") form.set("provider", provider);
  form.set("file", file);
  return { body: form as never };
}

const NAMES: Partial<Record<Provider, string>> = { ses: "Amazon SES", sendgrid: "SendGrid", custom: "Another list" };

function sayProvider(name: Provider): string {
  return NAMES[name] ?? wordOf(name);
}

type JobGiven = { id: string; again: () => void };

export function ImportJob({ id, again }: JobGiven) {
  const query = useQuery(suppressionImport(id));
  return <Loaded of={query}>{({ job }) => <Shown job={job} again={again} />}</Loaded>;
}

function Shown({ job, again }: { job: Job; again: () => void }) {
  const committing = useAct({
    run: () => take(v1.POST("/v1/imports/suppressions/jobs/{id}/commit", { params: { path: { id: job.id } } })),
    refresh: [["import", job.id]],
  });
  return (
    <div className="stack">
      <section className="panel" aria-label="The file">
        <div className="pad" role="status">
          <Heading job={job} />
        </div>
        <div className="stats border-t border-line">
          <Figure value={job.valid_rows} of="can be added" />
          <Figure value={job.already_suppressed_rows} of="are on the list already" />
          <Figure value={job.duplicate_rows} of="stand twice" />
          <Figure value={job.invalid_rows} of="cannot be read" />
        </div>
        <div className="foot flex-wrap">
          <span className="num">
            {Object.entries(job.by_reason)
              .filter(([, count]) => count > 0)
              .map(([reason, count]) => `${count.toLocaleString("en")} ${wordOf(reason).toLowerCase()}`)
              .join(" · ")}
          </span>
          <span className="grow" />
          <Button look="quiet" onClick={again}>
            Another file
          </Button>
          {job.status === "previewed" && (
            <Button
              look="primary"
              disabled={job.valid_rows === 0}
              busy={committing.isPending && "Beginning…"}
              onClick={() => committing.mutate(undefined)}
            >
              Add {sayCount(job.valid_rows, ADDRESSES)}
            </Button>
          )}
        </div>
      </section>
      {job.questions.length > 0 && (
        <section className="panel pad" aria-label="To look at first">
          <h2>Check these columns first</h2>
          <ul className="grid gap-1">
            {job.questions.map(({ column, message }) => (
              <li key={column}>
                <code>{column}</code> <span className="text-ink-2">{message}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
      <Errors job={job} />
      <Sample job={job} />
    </div>
  );
}

function Heading({ job }: { job: Job }) {
  const share = job.valid_rows === 0 ? 0 : job.committed_rows / job.valid_rows;
  const rows = sayCount(job.total_rows, { one: "row" });
  const from = `${rows}, ${sayProvider(job.provider)}`;
  if (job.status === "reading") return <h2 className="mb-0!">Reading: {rows} so far</h2>;
  if (job.status === "previewed") return <h2 className="mb-0!">{from}. Nothing is added yet.</h2>;
  if (job.status === "failed") return <h2 className="mb-0! text-bad">It failed. Nothing more is added; try again.</h2>;
  if (job.status === "expired") return <h2 className="mb-0!">The preview has expired. Upload the file again.</h2>;
  return (
    <>
      <h2 className="mb-0!">{job.status === "committed" ? "Done" : "Adding"}</h2>
      <div className="bar-of">
        <i style={{ width: `${Math.min(1, share) * 100}%` }} />
      </div>
      <p className="num text-[13px] text-ink-2">
        {job.committed_rows.toLocaleString("en")} of {job.valid_rows.toLocaleString("en")} added
      </p>
    </>
  );
}

function Figure({ value, of }: { value: number; of: string }) {
  return (
    <div>
      <b>{value.toLocaleString("en")}</b>
      <span>{of}</span>
    </div>
  );
}

function Errors({ job: { errors, invalid_rows } }: { job: Job }) {
  if (errors.length === 0) return null;
  return (
    <section className="panel" aria-label="Rows that cannot be read">
      <table className="table">
        <caption className="sr-only">Rows that cannot be read</caption>
        <thead>
          <tr>
            <th className="r w-[72px]">Row</th>
            <th className="hide-s w-[22%]">Column</th>
            <th className="hide-s w-[28%]">Value</th>
            <th>What is wrong</th>
          </tr>
        </thead>
        <tbody>
          {errors.map(({ row, column, value, message }) => (
            <tr key={`${row} ${column} ${message}`} title={message}>
              <td className="r">{row === null ? "–" : row.toLocaleString("en")}</td>
              <td className="hide-s">{column ?? "–"}</td>
              <td className="hide-s">
                <code>{value ?? "–"}</code>
              </td>
              <td className="whitespace-normal! py-2!">{message}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {invalid_rows > errors.length && (
        <div className="foot">
          The first {errors.length} of {invalid_rows.toLocaleString("en")}
        </div>
      )}
    </section>
  );
}

function Sample({ job: { sample } }: { job: Job }) {
  if (sample.length === 0) return null;
  return (
    <section className="panel" aria-label="The first rows">
      <table className="table">
        <caption className="sr-only">The first rows, as they were read</caption>
        <thead>
          <tr>
            <th className="r w-[72px]">Row</th>
            <th>Address</th>
            <th className="w-[112px] sm:w-[150px]">Reason</th>
            <th className="hide-s w-[18%]">Code</th>
            <th className="hide-s w-[26%]">Note</th>
          </tr>
        </thead>
        <tbody>
          {sample.map(({ row, email, reason, bounce_code, diag_code, note }) => (
            <tr key={row}>
              <td className="r">{row.toLocaleString("en")}</td>
              <td title={email}>{email}</td>
              <td>{wordOf(reason)}</td>
              <td className="hide-s num">{[bounce_code, diag_code].filter(Boolean).join(" ") || "–"}</td>
              <td className="hide-s dim" title={note ?? undefined}>
                {note ?? "–"}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
