// How a new domain grows: what it may send today, what came of each day, why it is held, and how it is paused or skipped.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import type { Schemas } from "../../api/client.ts";
import { warming, warmingHistory } from "../../api/domain-queries.ts";
import { Chart } from "../../charts/chart.tsx";
import { WarmingActs } from "../../forms/domain/warming-acts.tsx";
import { PHASE_WORDS, sayNumber, sayShare } from "../../lib/domain-views.ts";
import { wordOf } from "../../lib/states.ts";
import { Empty, Loaded } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { When } from "../../ui/when.tsx";
import { CsvButton } from "./csv-button.tsx";
import { DomainPage } from "./page.tsx";

const route = getRouteApi("/domains/$id/warming");
type Status = Schemas["Warming"];
type Day = Schemas["WarmingDay"];

export function WarmingPage() {
  const { id } = route.useParams();
  const query = useQuery(warming(id));
  const history = useQuery(warmingHistory(id));
  return (
    <DomainPage id={id} needs="sending" acts={query.data && <WarmingActs id={id} status={query.data} />}>
      {() => (
        <div className="stack">
          <section className="panel" aria-label="Today">
            <Loaded of={query} rows={3}>
              {(status) => <Today status={status} />}
            </Loaded>
          </section>
          <section className="panel" aria-label="Day by day">
            <Loaded of={history}>
              {({ history: days }) =>
                days.length === 0 ? (
                  <Empty title="No full day yet">Each day's limit and result are listed here when the day ends.</Empty>
                ) : (
                  <History days={days} status={query.data} />
                )
              }
            </Loaded>
          </section>
        </div>
      )}
    </DomainPage>
  );
}

function Today({ status }: { status: Status }) {
  const { phase, current_limits: limits, today_sent, remaining_today, next_phase, next_phase_at } = status;
  const share = limits.daily_limit === null ? null : Math.min(1, today_sent / Math.max(1, limits.daily_limit));
  return (
    <>
      <div className="pad">
        <div className="flex flex-wrap items-center gap-2">
          <h2 className="mb-0!">{PHASE_WORDS[phase]}</h2>
          {status.paused ? (
            <Tag tone="bad">Paused</Tag>
          ) : status.held_reason ? (
            <Tag tone="warn">Held</Tag>
          ) : phase === "warmed" ? (
            <Tag tone="good">No limit</Tag>
          ) : null}
          {status.days_in_current_phase > 0 && <span className="dim num">day {status.days_in_current_phase}</span>}
        </div>
        {status.paused && <p className="mt-2 text-bad">{status.paused_reason ?? "It was paused by hand."}</p>}
        {status.held_reason && <p className="mt-2 max-w-[68ch] text-ink-2">{status.held_reason}</p>}
        {phase === "not_started" && (
          <p className="mt-2 text-ink-2">It starts by itself when the domain's SPF and DKIM records are found.</p>
        )}
        {share !== null && (
          <>
            <div className="bar-of">
              <i style={{ width: `${share * 100}%` }} />
            </div>
            <p className="num text-[13px] text-ink-2">
              {today_sent.toLocaleString("en")} of {sayNumber(limits.daily_limit)} recipients today (UTC)
              {remaining_today !== null && `, ${remaining_today.toLocaleString("en")} left`}
            </p>
          </>
        )}
        {next_phase && next_phase_at && (
          <p className="dim mt-1 text-[13px]">
            {PHASE_WORDS[next_phase]} begins <When at={next_phase_at} as="both" /> at the earliest.
          </p>
        )}
      </div>
      <div className="stats border-t border-line">
        <Figure value={sayNumber(limits.hourly_limit)} of="an hour" />
        <Figure value={sayShare(status.delivery_rate)} of="delivered, 3 days" />
        <Figure value={sayShare(status.bounce_rate)} of="bounced hard (2 % holds)" />
        <Figure value={sayShare(status.complaint_rate)} of="complaints (0.1 % holds)" />
      </div>
    </>
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

const HEADS = ["Day", "Phase", "Limit", "Sent", "Delivered", "Hard bounces", "Complaints", "Decision"];

function History({ days, status }: { days: Day[]; status: Status | undefined }) {
  const rising = days.toReversed();
  const today = status?.current_limits.daily_limit;
  const times = [...rising.map(({ date }) => Date.parse(date)), ...(today ? [Date.now()] : [])];
  const limit = [...rising.map(({ daily_limit }) => daily_limit), ...(today ? [today] : [])];
  const sent = [...rising.map((day) => day.sent), ...(today ? [status?.today_sent ?? 0] : [])];
  const rows = days.map((day) => [
    ...[day.date, PHASE_WORDS[day.phase], day.daily_limit, day.sent, day.delivered, day.hard_bounced, day.complained],
    wordOf(day.decision),
  ]);
  return (
    <>
      <div className="pad">
        <Chart
          label="The limit of each day, and what was sent; the figures are in the table"
          times={times}
          series={[
            { name: "Limit", values: limit, tone: "idle", dashed: true },
            { name: "Sent", values: sent, tone: "accent" },
          ]}
        />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by keyboard */}
      <section className="scroll" tabIndex={0} aria-label="Days, newest first">
        <table className="table wide">
          <thead>
            <tr>
              {HEADS.map((head, place) => (
                <th key={head} className={place > 1 && place < 7 ? "r" : ""}>
                  {head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {days.map((day) => (
              <tr key={day.date} title={day.reason ?? undefined}>
                <td className="num">{day.date}</td>
                <td>{PHASE_WORDS[day.phase]}</td>
                <td className="r">{sayNumber(day.daily_limit)}</td>
                <td className="r">{day.sent.toLocaleString("en")}</td>
                <td className="r">{day.delivered.toLocaleString("en")}</td>
                <td className="r">{day.hard_bounced.toLocaleString("en")}</td>
                <td className="r">{day.complained.toLocaleString("en")}</td>
                <td>{wordOf(day.decision)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <div className="foot">
        <span>Recipients by UTC day</span>
        <span className="grow" />
        <CsvButton name="warming.csv" heads={HEADS} rows={rows} />
      </div>
    </>
  );
}
