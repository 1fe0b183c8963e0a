// The health of the installation: what runs, and what the doctor found when somebody had it look. For operators.
import { useQuery } from "@tanstack/react-query";
import { type PeopleSchemas, people, take } from "../../api/client.ts";
import { health } from "../../api/operator-queries.ts";
import { useAct } from "../../lib/act.ts";
import { sayCount, saySize } from "../../lib/times.ts";
import type { Tone } from "../../lib/why.ts";
import { Button } from "../../ui/button.tsx";
import { OperatorNav } from "../../ui/operator-nav.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Empty, Loaded } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { When } from "../../ui/when.tsx";

type Health = PeopleSchemas["Health"];
type Look = PeopleSchemas["HealthLook"];
type Check = PeopleSchemas["HealthCheck"];

export function HealthPage() {
  const query = useQuery(health);
  const look = useAct({
    run: () => take(people.POST("/dashboard/api/operator/health/look")),
    refresh: [["operator", "health"]],
    done: () => "The check is done.",
  });
  return (
    <>
      <PageHead
        title="Health"
        always={
          query.data && (
            <Button look="primary" busy={look.isPending && "Checking…"} onClick={() => look.mutate(undefined)}>
              Check now
            </Button>
          )
        }
      />
      <OperatorNav />
      <Loaded of={query}>
        {({ health: found }) => (
          <div className="stack">
            <Running found={found} />
            {found.looks.length === 0 ? (
              <section className="panel">
                <Empty title="Not checked yet">
                  “Check now” does what <code>postern doctor</code> does on this machine. It takes some seconds and
                  changes nothing.
                </Empty>
              </section>
            ) : (
              found.looks.map((one) => <OneLook key={one.machine} look={one} />)
            )}
            <Nodes found={found} />
          </div>
        )}
      </Loaded>
    </>
  );
}

function Running({ found: { versions, database, disk, certificate } }: { found: Health }) {
  return (
    <section className="panel stats" aria-label="What runs">
      <div>
        <b>{versions.postern}</b>
        <span>Postern, on Node {versions.node}</span>
      </div>
      <div>
        <b>{versions.database.split(" ")[0]}</b>
        <span>PostgreSQL, {saySize(database.bytes)}</span>
      </div>
      <div>
        <b>{disk ? saySize(disk.free_bytes) : "–"}</b>
        <span className="[overflow-wrap:anywhere]">
          {disk ? `free of ${saySize(disk.bytes)} in ${disk.folder}` : "The data folder cannot be read"}
        </span>
      </div>
      <div>
        <b>{certificate?.not_after ? <When at={certificate.not_after} /> : "–"}</b>
        <span>
          {certificate
            ? (certificate.failure ?? `Certificate of ${certificate.names.join(", ")} ends`)
            : "Postern asks for no certificate"}
        </span>
      </div>
    </section>
  );
}

const TONES: Record<Check["status"], { word: string; tone: Tone }> = {
  problem: { word: "Problem", tone: "bad" },
  warning: { word: "Warning", tone: "warn" },
  ok: { word: "OK", tone: "good" },
  skipped: { word: "Not checked", tone: "idle" },
};
/** What somebody must do stands first. */
const ORDER: Check["status"][] = ["problem", "warning", "ok", "skipped"];

function OneLook({ look: { machine, at, asked_by, checks } }: { look: Look }) {
  const count = (status: Check["status"]) => checks.filter((check) => check.status === status).length;
  const sorted = ORDER.flatMap((status) => checks.filter((check) => check.status === status));
  return (
    <section className="panel" aria-label={`Checks of ${machine}`}>
      <div className="pad">
        <h2>What the doctor found on {machine}</h2>
        <p className="dim text-[12.5px]">
          {sayCount(count("problem"), { one: "problem" })}, {sayCount(count("warning"), { one: "warning" })},{" "}
          {count("skipped")} not looked at · <When at={at} as="both" /> · asked by {asked_by}
        </p>
      </div>
      {sorted.map((check, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: several checks have one name
        <div key={place} className="rec">
          <span>
            <Tag tone={TONES[check.status].tone}>{TONES[check.status].word}</Tag>
          </span>
          <div className="min-w-0 [overflow-wrap:anywhere]">
            <b className="font-semibold">{check.name}</b>
            <p className="text-ink-2">{check.says}</p>
            {check.remedy !== null && <p className="hint">{check.remedy}</p>}
          </div>
        </div>
      ))}
    </section>
  );
}

function Nodes({ found: { nodes } }: { found: Health }) {
  return (
    <section className="panel" aria-label="Sending processes">
      {nodes.length === 0 ? (
        <Empty title="No process sends">Start one with the role mta: mail is accepted and waits until then.</Empty>
      ) : (
        <table className="table">
          <caption className="sr-only">Processes that send</caption>
          <thead>
            <tr>
              <th>Sending process</th>
              <th className="hide-s">Roles</th>
              <th className="r w-[120px]">Since</th>
              <th className="r w-[120px]">Seen</th>
            </tr>
          </thead>
          <tbody>
            {nodes.map(({ machine, pid, roles, started_at, seen_at }) => (
              <tr key={`${machine} ${pid}`}>
                <td title={`${machine} ${pid}`}>
                  {machine} <span className="dim num">{pid}</span>
                </td>
                <td className="hide-s text-ink-2">{roles.join(", ")}</td>
                <td className="r dim">
                  <When at={started_at} />
                </td>
                <td className="r dim">
                  <When at={seen_at} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
