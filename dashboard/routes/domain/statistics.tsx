// What became of a domain's mail: by day, by hour, by provider. The chart is for the shape, the table for the figures.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type FiguresRow, figures } from "../../api/domain-queries.ts";
import { Chart } from "../../charts/chart.tsx";
import { GROUPINGS, SPANS, type StatsView, sayShare } from "../../lib/domain-views.ts";
import { wordOf } from "../../lib/states.ts";
import { Empty, Loaded } from "../../ui/states.tsx";
import { CsvButton } from "./csv-button.tsx";
import { DomainPage } from "./page.tsx";

const route = getRouteApi("/domains/$id/statistics");

export function StatisticsPage() {
  const { id } = route.useParams();
  const { by = "day", days = 30 } = route.useSearch();
  const navigate = route.useNavigate();
  const change = (changed: StatsView) =>
    void navigate({ search: (before) => ({ ...before, ...changed }), replace: true });
  const query = useQuery(figures(id, by, days));
  return (
    <DomainPage id={id} needs="sending">
      {({ domain: name }) => (
        <>
          <div className="filters">
            <select
              className="input"
              aria-label="By"
              value={by}
              onChange={(event) => change({ by: GROUPINGS.find((one) => one === event.target.value) })}
            >
              {GROUPINGS.map((one) => (
                <option key={one} value={one}>
                  By {one}
                </option>
              ))}
            </select>
            <select
              className="input"
              aria-label="Days"
              value={days}
              onChange={(event) => change({ days: SPANS.find((one) => String(one) === event.target.value) })}
            >
              {SPANS.map((one) => (
                <option key={one} value={one}>
                  {by === "hour" && one > 14 ? "Last 14 days" : `Last ${one} days`}
                </option>
              ))}
            </select>
          </div>
          <section className="panel" aria-label="Figures" aria-busy={query.isPlaceholderData}>
            <Loaded of={query}>{(rows) => <Shown rows={rows} by={by} name={name} />}</Loaded>
          </section>
        </>
      )}
    </DomainPage>
  );
}

const COLUMNS = [
  ["Sent", "total_sent"],
  ["Delivered", "total_delivered"],
  ["Deferred", "total_deferred"],
  ["Bounced", "total_bounced"],
  ["Complaints", "total_complaints"],
  ["Suppressed", "total_suppressed"],
] as const;

type ShownGiven = { rows: FiguresRow[]; by: (typeof GROUPINGS)[number]; name: string };

function Shown({ rows, by, name }: ShownGiven) {
  if (rows.every(({ total_sent, total_suppressed }) => total_sent + total_suppressed === 0))
    return <Empty title="Nothing was sent in this time">Figures come with the first mail of a live key.</Empty>;
  const listed = by === "provider" ? rows : rows.toReversed();
  const heads = [wordOf(by), ...COLUMNS.map(([head]) => head), "Delivered share"];
  const csv = listed.map((row) => [row.name, ...COLUMNS.map(([, field]) => row[field]), row.delivery_rate]);
  return (
    <>
      {by !== "provider" && (
        <div className="pad">
          <Chart
            label={`Sent, delivered and bounced by ${by}; the figures are in the table`}
            times={rows.map(({ at }) => at ?? 0)}
            series={[
              { name: "Sent", values: rows.map(({ total_sent }) => total_sent), tone: "idle" },
              { name: "Delivered", values: rows.map(({ total_delivered }) => total_delivered), tone: "accent" },
              { name: "Bounced", values: rows.map(({ total_bounced }) => total_bounced), tone: "bad" },
            ]}
          />
        </div>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by keyboard */}
      <section className="scroll" tabIndex={0} aria-label={`Figures by ${by}`}>
        <table className="table wide">
          <thead>
            <tr>
              <th>{wordOf(by)}</th>
              {COLUMNS.map(([head]) => (
                <th key={head} className="r">
                  {head}
                </th>
              ))}
              <th className="r w-[170px]">Share delivered</th>
            </tr>
          </thead>
          <tbody>
            {listed.map((row) => (
              <tr key={row.name}>
                <td className="num">{by === "provider" ? wordOf(row.name) : sayPoint(row.name)}</td>
                {COLUMNS.map(([head, field]) => (
                  <td key={head} className={row[field] === 0 ? "r dim" : "r"}>
                    {row[field].toLocaleString("en")}
                  </td>
                ))}
                <td className="r">
                  {row.total_sent === 0 ? <span className="dim">–</span> : <Share share={row.delivery_rate} />}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <div className="foot">
        <span>Recipients, by UTC time</span>
        <span className="grow" />
        <CsvButton name={`${name}-by-${by}.csv`} heads={heads} rows={csv} />
      </div>
    </>
  );
}

function Share({ share }: { share: number }) {
  return (
    <span className="inline-flex items-center justify-end gap-2">
      <span className="bar-of m-0! w-16" aria-hidden="true">
        <i style={{ width: `${share * 100}%` }} />
      </span>
      {sayShare(share)}
    </span>
  );
}

/** `2026-11-24`, or `2026-11-24 14:00`. */
function sayPoint(name: string): string {
  return name.slice(0, 16).replace("T", " ");
}
