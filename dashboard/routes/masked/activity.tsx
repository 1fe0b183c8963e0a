// What happened on a masked address, newest first: no subjects, no bodies. A held reply says why, and how it is sent all the same.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { Schemas } from "../../api/client.ts";
import { maskedActivity } from "../../api/masked-queries.ts";
import { PAGE_ROWS } from "../../api/queries.ts";
import { ACTIVITY_TYPES, type MaskedAliasView, OUTCOME_TONES, OUTCOMES } from "../../lib/masked-filters.ts";
import { sayFailure } from "../../lib/masked-words.ts";
import { wordOf } from "../../lib/states.ts";
import { saySize } from "../../lib/times.ts";
import { Choice } from "../../ui/choice.tsx";
import { ListFoot } from "../../ui/list-foot.tsx";
import { Empty, Loaded } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { When } from "../../ui/when.tsx";

const route = getRouteApi("/masked/$id");
type Entry = Schemas["MaskedActivity"];

export function Activity({ id }: { id: string }) {
  const view = route.useSearch();
  const navigate = route.useNavigate();
  const list = useQuery(maskedActivity(id, view));
  const change = (changed: Partial<MaskedAliasView>) =>
    void navigate({ search: (before) => ({ ...before, after: undefined, ...changed }), replace: true });
  return (
    <>
      <div className="filters">
        <Choice label="What" value={view.type} pick={(type) => change({ type: type as MaskedAliasView["type"] })}>
          {ACTIVITY_TYPES.map((type) => (
            <option key={type} value={type}>
              {wordOf(type)}
            </option>
          ))}
        </Choice>
        <Choice
          label="Outcome"
          value={view.outcome}
          pick={(outcome) => change({ outcome: outcome as MaskedAliasView["outcome"] })}
        >
          {OUTCOMES.map((outcome) => (
            <option key={outcome} value={outcome}>
              {wordOf(outcome)}
            </option>
          ))}
        </Choice>
      </div>
      <div className="panel" aria-busy={list.isPlaceholderData}>
        <Loaded of={list} rows={5}>
          {(page) =>
            page.activity.length === 0 ? (
              <Empty title="Nothing here yet">
                Forwards, replies, blocked mail and changes stand here as they happen.
              </Empty>
            ) : (
              <Rows id={id} page={page} readAtMs={list.dataUpdatedAt} />
            )
          }
        </Loaded>
      </div>
    </>
  );
}

function Rows({ id, page, readAtMs }: { id: string; page: Schemas["MaskedActivityList"]; readAtMs: number }) {
  const view = route.useSearch();
  return (
    <>
      <ul aria-label="Activity, newest first">
        {page.activity.map((entry) => (
          <li key={entry.id} className="happened">
            <One entry={entry} />
          </li>
        ))}
      </ul>
      <ListFoot page={page} one="act" readAtMs={readAtMs}>
        {page.activity.length === PAGE_ROWS && (
          <Link
            to="/masked/$id"
            params={{ id }}
            search={{ ...view, after: page.activity.at(-1)?.id }}
            className="btn quiet"
          >
            Older
          </Link>
        )}
      </ListFoot>
    </>
  );
}

function One({ entry }: { entry: Entry }) {
  const { type, outcome, reason, detail, contact, destination, size, redactions, timestamp } = entry;
  const marks = [
    ["SPF", entry.spf],
    ["DKIM", entry.dkim],
    ["DMARC", entry.dmarc],
  ].flatMap(([name, result]) => (result === null ? [] : [`${name} ${result}`]));
  const facts = [
    ...(size === null ? [] : [saySize(size)]),
    ...marks,
    ...(redactions ? [`${redactions} hidden in it`] : []),
  ];
  return (
    <>
      <Tag tone={type === "config" ? "idle" : OUTCOME_TONES[outcome]}>
        {type === "config" ? "Changed" : wordOf(outcome)}
      </Tag>
      <div className="min-w-0">
        <div className="truncate">
          {type === "config" ? "The address itself" : wordOf(type)}{" "}
          <Way entry={entry} contact={contact} destination={destination} />
        </div>
        <div className="dim text-[12.5px]">
          {[...(reason === null ? [] : [type === "bounce" ? sayFailure(reason) : wordOf(reason)]), ...facts].join(
            " · ",
          )}
        </div>
        {detail && <code className="said mt-2!">{detail}</code>}
        {outcome === "held" && type === "reply" && <HowToSend />}
      </div>
      <span className="dim r">
        <When at={timestamp} />
      </span>
    </>
  );
}

function Way({ entry: { type }, contact, destination }: { entry: Entry } & Pick<Entry, "contact" | "destination">) {
  if (contact === null && destination === null) return null;
  if (type === "reply") return <span className="text-ink-2">to {contact ?? "a contact"}</span>;
  return (
    <span className="text-ink-2">
      {contact !== null && `from ${contact}`}
      {destination !== null && <span className="hide-s"> → {destination}</span>}
    </span>
  );
}

function HowToSend() {
  return (
    <p className="mt-1 max-w-[64ch] text-[13px] text-ink-2">
      Nobody received it. Its author has a notice with two links: one sends this reply as it is, for 24 hours and once;
      the other lets replies show more. Only the author can use them, so nothing here does it for them.
    </p>
  );
}
