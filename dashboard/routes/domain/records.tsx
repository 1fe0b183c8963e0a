// One domain: the records to publish with what was found beside them, checked by itself and on demand; how its mail fares;
// what it is for.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import type { Schemas } from "../../api/client.ts";
import { dnsRecords, domainStats } from "../../api/queries.ts";
import { sayError } from "../../api/say-error.ts";
import { ChangeType } from "../../forms/domain/change-type.tsx";
import { useNow } from "../../lib/now.ts";
import { CopyButton } from "../../ui/copy.tsx";
import { Loaded } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { When } from "../../ui/when.tsx";
import { DomainPage } from "./page.tsx";

const route = getRouteApi("/domains/$id");

export function OneDomain() {
  const { id } = route.useParams();
  const records = useQuery(dnsRecords(id));
  return (
    <DomainPage id={id}>
      {(found) => (
        <div className="stack">
          {found.warming !== null && <Sending domain={found} />}
          <section className="panel" aria-label="DNS records">
            <Loaded of={records} rows={5}>
              {(answer) => <Records domain={found} records={answer.records} />}
            </Loaded>
          </section>
          <ChangeType key={found.type} domain={found} />
        </div>
      )}
    </DomainPage>
  );
}

/** The figures of the last seven days; a plan without them says so in their place. */
function Sending({ domain: { id, warming } }: { domain: Schemas["Domain"] }) {
  const stats = useQuery(domainStats(id));
  if (stats.error) return <p className="dim">{sayError(stats.error).text}</p>;
  if (stats.data === undefined) return null;
  const { metrics } = stats.data;
  const percent = (share: number) => (metrics.total_sent === 0 ? "–" : `${(share * 100).toFixed(1)} %`);
  return (
    <section aria-label="Mail of the last seven days" className="panel">
      <div className="stats">
        <Figure value={metrics.total_sent.toLocaleString("en")} of="sent, last 7 days" />
        <Figure value={percent(metrics.delivery_rate)} of="delivered" />
        <Figure value={percent(metrics.hard_bounce_rate)} of="bounced hard" />
        <Figure value={percent(metrics.complaint_rate)} of="complaints" />
      </div>
      {warming?.hint && <div className="foot">{warming.hint}</div>}
    </section>
  );
}

function Figure({ value, of }: { value: string; of: string }) {
  return (
    <div>
      <b>{value}</b>
      <span>{of}</span>
    </div>
  );
}

const PURPOSES: Record<Schemas["DnsRecord"]["purpose"], string> = {
  ownership: "Ownership",
  spf: "SPF",
  dkim: "DKIM",
  return_path: "Return path",
  mx: "MX",
  dmarc: "DMARC",
  dmarc_authorization: "DMARC reports",
};

type RecordsGiven = { domain: Schemas["Domain"]; records: Schemas["DnsRecord"][] };

function Records({ domain: { domain: name, last_dns_check, next_check_at }, records }: RecordsGiven) {
  const zone = records.map((record) => zoneLine(record)).join("\n");
  return (
    <>
      {records.map((record) => (
        <OneRecord key={`${record.purpose} ${record.name}`} record={record} />
      ))}
      <div className="foot">
        <span>
          {last_dns_check === null ? "Not checked yet" : <>Checked {<When at={last_dns_check} as="relative" />}</>} ·
          Postern looks again by itself <NextCheck at={next_check_at} />
        </span>
        <span className="grow" />
        <a
          className="btn quiet"
          href={`data:text/plain;charset=utf-8,${encodeURIComponent(`${zone}\n`)}`}
          download={`${name}.zone`}
        >
          Zone file
        </a>
        <CopyButton text={zone} what="all records as a zone file" label="Copy all" />
      </div>
    </>
  );
}

/** The time of it; this page reads the records again meanwhile (api/queries.ts). */
function NextCheck({ at }: { at: string }) {
  return Date.parse(at) <= useNow() ? "now" : <When at={at} as="relative" />;
}

/** One line of a zone file; a text is cut into strings of at most 255 bytes (RFC 1035 §3.3.14). */
function zoneLine({ name, ttl, type, value, priority }: Schemas["DnsRecord"]): string {
  const strings = value.match(/.{1,255}/g) ?? [""];
  const quoted = strings.map((text) => `"${text.replaceAll(/["\\]/g, "\\$&")}"`).join(" ");
  const content = type === "TXT" ? quoted : `${priority === null ? "" : `${priority} `}${value}.`;
  return `${name}. ${ttl} IN ${type} ${content}`;
}

const RECORD_STATES: Record<Schemas["DnsRecord"]["status"], [tone: "good" | "warn" | "bad" | "idle", word: string]> = {
  ok: ["good", "Found"],
  missing: ["bad", "Missing"],
  mismatch: ["warn", "Differs"],
  error: ["warn", "No answer"],
  unchecked: ["idle", "Not checked"],
};

function OneRecord({ record }: { record: Schemas["DnsRecord"] }) {
  const { purpose, type, name, value, priority, required, status, found, hint } = record;
  const isOptional = !required && status !== "ok";
  const [tone, word] = RECORD_STATES[status];
  const content = priority === null ? value : `${priority} ${value}`;
  return (
    <div className="rec">
      <div>
        <div className="dim">{PURPOSES[purpose]}</div>
        {!required && <div className="dim text-[12px]">recommended</div>}
      </div>
      <div className="min-w-0">
        <div className="copy">
          <code>
            {name} <span className="dim">{type}</span>
          </code>
          <CopyButton text={name} what={`the name of the ${PURPOSES[purpose]} record`} />
        </div>
        <div className="copy">
          <code>{content}</code>
          <CopyButton text={value} what={`the value of the ${PURPOSES[purpose]} record`} />
        </div>
        {status === "mismatch" && found.length > 0 && (
          <p className="hint">
            Found <code className="inline!">{found.join(", ")}</code>
          </p>
        )}
        {hint && <p className="hint">{hint}</p>}
      </div>
      <div>
        <Tag tone={isOptional && tone === "bad" ? "idle" : tone}>{word}</Tag>
      </div>
    </div>
  );
}
