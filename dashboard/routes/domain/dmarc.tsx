// What receivers report of mail in the domain's name: how much passes, who sends it, and which policy may come next.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { Schemas } from "../../api/client.ts";
import { dmarcAddress, dmarcDaily, dmarcSummary } from "../../api/domain-queries.ts";
import { Chart } from "../../charts/chart.tsx";
import { UploadReports } from "../../forms/domain/upload-reports.tsx";
import { DMARC_LISTS, DMARC_SPANS, type DmarcView, sayShare } from "../../lib/domain-views.ts";
import { wordOf } from "../../lib/states.ts";
import { CopyButton } from "../../ui/copy.tsx";
import { Empty, Loaded } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { DmarcReports, DmarcSources } from "./dmarc-lists.tsx";
import { DomainPage } from "./page.tsx";

const route = getRouteApi("/domains/$id/dmarc");
type Summary = Schemas["DmarcSummary"];

export function DmarcPage() {
  const { id } = route.useParams();
  const { days = 30, list = "sources", after } = route.useSearch();
  const navigate = route.useNavigate();
  const change = (changed: DmarcView) =>
    void navigate({ search: (before) => ({ ...before, after: undefined, ...changed }), replace: true });
  const summary = useQuery(dmarcSummary(id, days));
  return (
    <DomainPage id={id}>
      {({ domain }) =>
        list === "upload" ? (
          <section className="panel" aria-label="Upload reports">
            <UploadReports domain={domain} />
            <div className="foot">
              Each report is counted for the domain that it is about.
              <span className="grow" />
              <Link to="/domains/$id/dmarc" params={{ id }} search={{ list: "reports" }} className="btn quiet">
                All reports
              </Link>
            </div>
          </section>
        ) : (
          <>
            <div className="filters">
              <select
                className="input"
                aria-label="Days"
                value={days}
                onChange={(event) => change({ days: DMARC_SPANS.find((one) => String(one) === event.target.value) })}
              >
                {DMARC_SPANS.map((one) => (
                  <option key={one} value={one}>
                    Last {one} days
                  </option>
                ))}
              </select>
              <span className="grow" />
              <Link to="/domains/$id/dmarc" params={{ id }} search={{ list: "upload" }} className="btn">
                Upload reports
              </Link>
            </div>
            <div className="stack">
              <Loaded of={summary}>{(found) => <Alignment id={id} summary={found} days={days} />}</Loaded>
              <Address id={id} />
              <section className="panel" aria-label="Lists">
                <div className="flex flex-wrap items-center gap-2 px-[14px] pt-3">
                  {DMARC_LISTS.map((one) => (
                    <button
                      key={one}
                      type="button"
                      className={one === list ? "btn" : "btn quiet"}
                      aria-pressed={one === list}
                      onClick={() => change({ list: one })}
                    >
                      {wordOf(one)}
                    </button>
                  ))}
                </div>
                {list === "sources" && <DmarcSources id={id} days={days} />}
                {list === "reports" && <DmarcReports id={id} after={after} />}
              </section>
            </div>
          </>
        )
      }
    </DomainPage>
  );
}

function Alignment({ id, summary, days }: { id: string; summary: Summary; days: number }) {
  const daily = useQuery(dmarcDaily(id, days));
  const { total_messages, published_policy, recommendation } = summary;
  const share = (value: number) => sayShare(total_messages === 0 ? null : value);
  if (total_messages === 0)
    return (
      <div className="panel">
        <Empty title="No report yet">
          Receivers report once a day where the domain's DMARC record asks them to. The record below does.
        </Empty>
      </div>
    );
  const rows = daily.data?.daily ?? [];
  return (
    <section className="panel" aria-label="Alignment">
      <div className="stats">
        <Figure value={total_messages.toLocaleString("en")} of={`mails, ${summary.report_count} reports`} />
        <Figure value={share(summary.alignment_rate)} of="pass DMARC" />
        <Figure value={share(summary.dkim_rate)} of="DKIM aligned" />
        <Figure value={share(summary.spf_rate)} of="SPF aligned" />
      </div>
      <Next policy={published_policy?.p ?? null} recommendation={recommendation} />
      <div className="pad">
        <Chart
          label="Mail that passes DMARC and mail that does not, day by day; the figures are in the table"
          times={rows.map(({ date }) => Date.parse(date))}
          series={[
            { name: "All", values: rows.map(({ total }) => total), tone: "idle" },
            { name: "Pass", values: rows.map(({ aligned }) => aligned), tone: "accent" },
          ]}
        />
      </div>
      <DayTable rows={rows} />
    </section>
  );
}

function DayTable({ rows }: { rows: Schemas["DmarcDay"][] }) {
  const days = rows.filter(({ total }) => total > 0).toReversed();
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by keyboard
    <section className="scroll" tabIndex={0} aria-label="Days with mail, newest first">
      <table className="table">
        <thead>
          <tr>
            <th className="w-[112px] sm:w-auto">Day</th>
            <th className="r">All</th>
            <th className="r">Pass</th>
            <th className="r">Share</th>
            <th className="r hide-s">Refused</th>
            <th className="r hide-s">Reports</th>
          </tr>
        </thead>
        <tbody>
          {days.map(({ date, total, aligned, alignment_rate, disposition, reports }) => (
            <tr key={date}>
              <td className="num">{date}</td>
              <td className="r">{total.toLocaleString("en")}</td>
              <td className="r">{aligned.toLocaleString("en")}</td>
              <td className="r">{sayShare(alignment_rate)}</td>
              <td className="r hide-s">{disposition.reject.toLocaleString("en")}</td>
              <td className="r hide-s">{reports}</td>
            </tr>
          ))}
        </tbody>
      </table>
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

type NextGiven = { policy: string | null; recommendation: Schemas["DmarcRecommendation"] };

/** The step that the figures allow, or why there is none. */
function Next({ policy, recommendation: { next_policy, reason, blocking_sources } }: NextGiven) {
  const isStep = next_policy !== null && next_policy !== policy;
  return (
    <div className="border-t border-line px-[18px] py-3">
      <div className="flex flex-wrap items-center gap-2">
        <span className="dim">Policy</span> <code>p={policy ?? "none seen"}</code>
        {isStep && (
          <>
            <span aria-hidden="true">→</span> <Tag tone="good">Ready for p={next_policy}</Tag>
          </>
        )}
      </div>
      <p className="mt-1 max-w-[72ch] text-ink-2">{reason}</p>
      {blocking_sources.length > 0 && (
        <p className="mt-1">
          In the way: <code>{blocking_sources.join(", ")}</code>
        </p>
      )}
    </div>
  );
}

function Address({ id }: { id: string }) {
  const query = useQuery(dmarcAddress(id));
  return (
    <section className="panel" aria-label="Where reports go">
      <Loaded of={query} rows={2}>
        {({ suggested_record: { name, type, value }, external_authorization: external }) => (
          <>
            <Line what="Record" name={name} type={type} value={value} />
            {external.required && (
              <Line what="Allows reports" name={external.name} type={external.type} value={external.value}>
                <Tag tone={external.status === "ok" ? "good" : "warn"}>{wordOf(external.status)}</Tag>
              </Line>
            )}
          </>
        )}
      </Loaded>
    </section>
  );
}

type LineGiven = { what: string; name: string; type: string; value: string; children?: React.ReactNode };

function Line({ what, name, type, value, children }: LineGiven) {
  return (
    <div className="rec">
      <div className="dim">{what}</div>
      <div className="min-w-0">
        <code>
          {name} <span className="dim">{type}</span>
        </code>
        <div className="copy">
          <code>{value}</code>
          <CopyButton text={value} what={`the value of ${name}`} />
        </div>
      </div>
      <div>{children}</div>
    </div>
  );
}
