// The DKIM keys of a domain. A change of keys goes step by step: the old key signs until DNS shows the new one.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { dkimKeys } from "../../api/domain-queries.ts";
import { DkimActs, EndKey } from "../../forms/domain/dkim-acts.tsx";
import { useAct } from "../../lib/act.ts";
import type { Tone } from "../../lib/why.ts";
import { Button } from "../../ui/button.tsx";
import { CopyButton } from "../../ui/copy.tsx";
import { Empty, Loaded } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { When } from "../../ui/when.tsx";
import { DomainPage } from "./page.tsx";

const route = getRouteApi("/domains/$id/dkim");
type Key = Schemas["DkimKey"];
type KeyRecord = Schemas["DkimKeyRecord"];

export function DkimPage() {
  const { id } = route.useParams();
  const query = useQuery(dkimKeys(id));
  const keys = query.data?.keys ?? [];
  return (
    <DomainPage id={id} needs="sending" acts={query.data && <DkimActs id={id} keys={keys} />}>
      {() => (
        <Loaded of={query}>
          {({ keys: all, dns_records }) => (
            <div className="stack">
              <Change id={id} keys={all} records={dns_records} />
              <section className="panel" aria-label="Keys">
                {all.length === 0 ? (
                  <Empty title="No key yet">Mail is not signed until there is one. “New key” makes it.</Empty>
                ) : (
                  all.map((key) => <OneKey key={key.selector} id={id} dkim={key} />)
                )}
              </section>
            </div>
          )}
        </Loaded>
      )}
    </DomainPage>
  );
}

const STATES: Record<Key["status"], [Tone, string]> = {
  pending: ["warn", "Waits for DNS"],
  active: ["good", "Signs"],
  retiring: ["idle", "Retiring"],
  deactivated: ["idle", "Ended"],
};

/** The steps of a change of keys, or of the first key: which are done, and what the next one takes. */
function Change({ id, keys, records }: { id: string; keys: Key[]; records: KeyRecord[] }) {
  const pending = keys.find(({ status }) => status === "pending");
  const old = keys.find(({ status }) => status === "active");
  const retiring = keys.find(({ status }) => status === "retiring");
  const checking = useAct({
    run: () => take(v1.POST("/v1/domains/{id}/dkim/verify", { params: { path: { id } } })),
    refresh: [["domain", id]],
    done: ({ keys: seen }) => {
      const key = seen.find(({ selector }) => selector === pending?.selector);
      return key?.verified ? `${key.selector} signs now.` : (key?.hint ?? "DNS does not show the new record yet.");
    },
  });
  const record = records.find(({ selector }) => selector === pending?.selector);
  if (pending === undefined && retiring === undefined) return null;
  return (
    <ol className="panel steps" aria-label="The change of keys">
      <Step place={1} isDone title={`The new key is made${pending ? `: ${pending.selector}` : ""}`} />
      <Step place={2} isDone={pending === undefined} title="Publish its record">
        {record && <Record record={record} />}
        {pending && old && <p>{old.selector} signs until DNS shows it: nothing is lost meanwhile.</p>}
        {pending && (
          <div className="acts">
            <Button changes busy={checking.isPending && "Checking…"} onClick={() => checking.mutate(undefined)}>
              Check DNS now
            </Button>
          </div>
        )}
      </Step>
      <Step place={3} isDone={pending === undefined} title="The new key signs">
        {pending && <p>By itself, once its record is seen. Postern looks every few minutes.</p>}
      </Step>
      {(old !== undefined || retiring !== undefined) && (
        <Step place={4} isDone={false} title="Remove the old record">
          {retiring?.retires_at ? (
            <p>
              Mail that {retiring.selector} signed is still on its way. Leave its record until{" "}
              <When at={retiring.retires_at} as="both" />.
            </p>
          ) : (
            <p>Seven days after the new key began to sign, not before.</p>
          )}
        </Step>
      )}
    </ol>
  );
}

type StepGiven = { place: number; isDone: boolean; title: string; children?: React.ReactNode };

function Step({ place, isDone, title, children }: StepGiven) {
  return (
    <li className={isDone ? "done" : ""}>
      <span className="mark" aria-hidden="true">
        {isDone ? "✓" : place}
      </span>
      <div className="min-w-0">
        <b className="font-semibold">{title}</b>
        {isDone && <span className="sr-only"> (done)</span>}
        {children}
      </div>
    </li>
  );
}

function Record({ record: { name, type, value } }: { record: KeyRecord }) {
  return (
    <div className="said font-mono text-[12.5px]">
      <div className="copy">
        <code>
          {name} <span className="dim">{type}</span>
        </code>
        <CopyButton text={name} what="the name of the record" />
      </div>
      <div className="copy">
        <code>{value}</code>
        <CopyButton text={value} what="the value of the record" />
      </div>
    </div>
  );
}

function OneKey({ id, dkim }: { id: string; dkim: Key }) {
  const { selector, algorithm, status, verified } = dkim;
  const [tone, word] = STATES[status];
  const isOver = status === "deactivated";
  return (
    <div className="rec">
      <Tag tone={tone}>{word}</Tag>
      <div className="min-w-0">
        <code className={isOver ? "dim" : ""}>{selector}</code>
        <div className="dim text-[12.5px]">
          {algorithm === "rsa" ? "RSA, 2,048 bits" : "Ed25519"}
          {!isOver && (verified ? " · DNS shows it" : " · DNS does not show it")}
          {" · "}
          <Since dkim={dkim} />
        </div>
      </div>
      {isOver ? <span /> : <EndKey id={id} dkim={dkim} />}
    </div>
  );
}

function Since({ dkim: { activated_at, deactivated_at, created_at } }: { dkim: Key }) {
  if (deactivated_at !== null)
    return (
      <>
        ended <When at={deactivated_at} as="both" />
      </>
    );
  if (activated_at !== null)
    return (
      <>
        signs since <When at={activated_at} as="both" />
      </>
    );
  return (
    <>
      made <When at={created_at} as="both" />
    </>
  );
}
