// One destination of the queue: its lanes, why each waits, and what an operator can order for it.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { PeopleSchemas } from "../../api/client.ts";
import { destination } from "../../api/operator-queries.ts";
import { DestinationActs } from "../../forms/operator/destination-acts.tsx";
import { toUnicode } from "../../lib/domain-names.ts";
import { sayCount } from "../../lib/times.ts";
import type { Tone } from "../../lib/why.ts";
import { AsciiName } from "../../ui/domain-name.tsx";
import { ListFoot } from "../../ui/list-foot.tsx";
import { OperatorNav } from "../../ui/operator-nav.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Empty, Loaded } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { When } from "../../ui/when.tsx";

const route = getRouteApi("/operator/queue/$domain");
type Destination = PeopleSchemas["QueuedDestinationView"];
type Lane = PeopleSchemas["QueuedLane"];

const crumb = (
  <Link to="/operator/queue" search={{}} className="crumb">
    Queue
  </Link>
);

export function OneDestination() {
  const { domain } = route.useParams();
  const query = useQuery(destination(domain));
  const found = query.data?.destination;
  return (
    <>
      <PageHead
        title={toUnicode(domain)}
        crumb={crumb}
        beside={<AsciiName name={domain} />}
        always={found && <DestinationActs destination={found} />}
      />
      <OperatorNav />
      <Loaded of={query}>
        {({ destination: one }) => (
          <div className="stack">
            {one.suspended_at !== null && <Suspended one={one} at={one.suspended_at} />}
            <section className="panel">
              {one.lanes.length === 0 ? (
                <Empty title="Nothing waits for this destination">
                  Mail to it stands here until it is delivered or given up.
                </Empty>
              ) : (
                <Lanes lanes={one.lanes} />
              )}
              <ListFoot page={{ total: one.lanes_total }} one="lane" readAtMs={query.dataUpdatedAt}>
                <span>{sayCount(one.waiting, { one: "delivery", many: "deliveries" })}</span>
              </ListFoot>
            </section>
          </div>
        )}
      </Loaded>
    </>
  );
}

function Suspended({ one, at }: { one: Destination; at: string }) {
  const { note, suspended_by, is_dropping, dropped } = one;
  const counted = sayCount(dropped, { one: "delivery", many: "deliveries" });
  return (
    <section className="panel why bad" aria-label="Suspended">
      <span />
      <div className="body">
        <h2>Mail to {one.domain} waits until somebody resumes it</h2>
        {note !== null && <p>“{note}”</p>}
        <p className="dim text-[12.5px]">
          Suspended by {suspended_by}, <When at={at} as="both" />
        </p>
        {(is_dropping || dropped > 0) && (
          <p role="status">{is_dropping ? `Dropping: ${counted} so far.` : `Dropped: ${counted}.`}</p>
        )}
      </div>
    </section>
  );
}

const WHY: Record<Lane["why"], { word: string; tone: Tone }> = {
  suspended: { word: "Suspended", tone: "bad" },
  organization_waits: { word: "Organization waits", tone: "warn" },
  resting: { word: "Resting", tone: "warn" },
  due: { word: "Due", tone: "good" },
  in_hand: { word: "Being sent", tone: "good" },
  deferred: { word: "Deferred", tone: "idle" },
  scheduled: { word: "Scheduled", tone: "idle" },
};

function Lanes({ lanes }: { lanes: Lane[] }) {
  return (
    <table className="table">
      <caption className="sr-only">Lanes of this destination, those with the most mail first</caption>
      <thead>
        <tr>
          <th>Organization</th>
          <th className="w-[164px]">Why</th>
          <th className="hide-s w-[190px]">Way</th>
          <th className="r w-[64px] min-[821px]:hidden">Waits</th>
          <th className="r hide-s w-[84px]">Due</th>
          <th className="r hide-s w-[90px]">Deferred</th>
          <th className="r hide-s w-[96px]">Scheduled</th>
          <th className="r hide-s w-[110px]">Oldest</th>
          <th className="r hide-s w-[110px]">Next</th>
        </tr>
      </thead>
      <tbody>
        {lanes.map((lane) => (
          <Row key={`${lane.organization_id} ${lane.class} ${lane.ip} ${lane.by_relay}`} lane={lane} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ lane }: { lane: Lane }) {
  const { word, tone } = WHY[lane.why];
  const due = lane.due + lane.in_hand;
  const isHeld = lane.why === "suspended" || lane.why === "organization_waits";
  const next = isHeld ? null : (lane.paused_until ?? lane.next_due_at);
  return (
    <tr>
      <td title={`${lane.organization} · ${lane.organization_id}`}>{lane.organization}</td>
      <td title={lane.reason ?? undefined}>
        <Tag tone={tone}>{word}</Tag>
      </td>
      <td className="hide-s text-ink-2" title={wayOf(lane)}>
        {wayOf(lane)}
      </td>
      <td className="r min-[821px]:hidden">{(due + lane.deferred + lane.scheduled).toLocaleString("en-GB")}</td>
      <td className="r hide-s">{due.toLocaleString("en-GB")}</td>
      <td className="r hide-s">{lane.deferred.toLocaleString("en-GB")}</td>
      <td className="r hide-s">{lane.scheduled.toLocaleString("en-GB")}</td>
      <td className="r dim hide-s">{lane.oldest_at ? <When at={lane.oldest_at} /> : "–"}</td>
      <td className="r dim hide-s">{next ? <When at={next} /> : "–"}</td>
    </tr>
  );
}

function wayOf({ by_relay, ip, pool, class: of }: Lane): string {
  const way = by_relay ? "relay" : ip === null ? "shared address" : `${ip} (${pool})`;
  return of === "bulk" ? `${way}, bulk` : way;
}
