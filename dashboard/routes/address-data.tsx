// What is stored of one address, for a person who asks: shown, kept as a file, or erased after its address was typed.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { addressData, wholeAddressData } from "../api/address-queries.ts";
import type { Schemas } from "../api/client.ts";
import { DownloadButton } from "../forms/download-button.tsx";
import { EraseAddress } from "../forms/erase-address.tsx";
import { SearchField } from "../forms/search-field.tsx";
import { useOwn } from "../lib/own.ts";
import { wordOf } from "../lib/states.ts";
import { Button } from "../ui/button.tsx";
import { ListFoot } from "../ui/list-foot.tsx";
import { SettingsHead } from "../ui/settings-head.tsx";
import { Empty, Loaded } from "../ui/states.tsx";
import { When } from "../ui/when.tsx";

const route = getRouteApi("/settings/data");
type Found = Schemas["ExportAddressDataAnswer"];

export function AddressDataPage() {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const { email } = filters;
  return (
    <>
      <SettingsHead title="Data of an address" />
      <div className="filters">
        <SearchField
          label="The whole e-mail address"
          value={email}
          search={(sought) => void navigate({ search: sought === undefined ? {} : { email: sought } })}
        />
      </div>
      {email === undefined ? (
        <div className="panel">
          <Empty title="Whose data is asked for?">
            A person may ask what you have stored about their address, and have it erased. Enter the address to see it.
          </Empty>
        </div>
      ) : (
        <OfAddress filters={{ ...filters, email }} />
      )}
    </>
  );
}

function OfAddress({ filters }: { filters: { email: string; after?: string } }) {
  const list = useQuery(addressData(filters));
  return (
    <div aria-busy={list.isPlaceholderData}>
      {list.data === undefined ? (
        <div className="panel">
          <Loaded of={list}>{() => null}</Loaded>
        </div>
      ) : (
        <div className="stack">
          <Summary found={list.data} />
          <Mail found={list.data} readAtMs={list.dataUpdatedAt} />
        </div>
      )}
    </div>
  );
}

function Summary({ found }: { found: Found }) {
  const { organization } = useOwn();
  const [isAsked, ask] = useState(false);
  const mayErase = organization.role === "owner" || organization.role === "admin";
  const { email, total, masked } = found;
  const counts = [
    ["Sent to it", total.sent],
    ["Received", total.received],
    ["Suppressions", total.suppressions],
    ["Masked contacts", masked.contacts.length],
    ["Masked mailboxes", masked.destination === null ? 0 : 1],
    ["Sent from it", total.sent_from],
    ["Aliases to it", total.aliases],
    ["Rules naming it", total.rules],
    ["Acts in the log", total.audit_entries],
  ] as const;
  return (
    <section className="panel pad settings">
      <div>
        <h2 className="break-all">{email}</h2>
        <p className="dim">What live keys sent and received. Its last four counts stay when it is erased.</p>
      </div>
      <div className="grid gap-4">
        <dl className="grid grid-cols-[minmax(0,1fr)_auto] gap-y-1.5 text-[13px] sm:max-w-[320px]">
          {counts.map(([name, count]) => (
            <div key={name} className="contents">
              <dt className="text-ink-2">{name}</dt>
              <dd className="num text-right">{count.toLocaleString("en-GB")}</dd>
            </div>
          ))}
        </dl>
        <div className="flex flex-wrap gap-2">
          <DownloadButton fetch={() => asFile(email)} name="address-data.json" label="Download JSON" look="plain" />
          {mayErase ? (
            <Button look="danger" onClick={() => ask(true)}>
              Erase
            </Button>
          ) : (
            <span className="dim self-center text-[13px]">Owners and admins erase it.</span>
          )}
        </div>
      </div>
      <EraseAddress email={email} open={isAsked} close={() => ask(false)} />
    </section>
  );
}

async function asFile(email: string): Promise<Blob> {
  return new Blob([JSON.stringify(await wholeAddressData(email), null, 2)], { type: "application/json" });
}

function Mail({ found, readAtMs }: { found: Found; readAtMs: number }) {
  const filters = route.useSearch();
  const { sent, received, next_after, total } = found;
  const rows = [...sent.map(ofSent), ...received.map(ofReceived)].sort((a, b) => (a.id < b.id ? 1 : -1));
  if (rows.length === 0)
    return (
      <div className="panel">
        <Empty title="No mail of this address">
          {filters.after === undefined
            ? "None was sent to it or received from it, or it was erased."
            : "No older mail."}
        </Empty>
      </div>
    );
  return (
    <section className="panel">
      <table className="table">
        <caption className="sr-only">Mail of this address, newest first</caption>
        <thead>
          <tr>
            <th className="w-[84px] sm:w-[112px]">Mail</th>
            <th>Subject</th>
            <th className="hide-s w-[150px]">State</th>
            <th className="r w-[124px]">When</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ id, kind, subject, state, at }) => (
            <tr key={id}>
              <td className="dim">{kind}</td>
              <td title={subject}>
                <Link to={kind === "Received" ? "/inbound/$id" : "/emails/$id"} params={{ id }} className="row-link">
                  {subject || <span className="dim">no subject</span>}
                </Link>
              </td>
              <td className="hide-s">{state}</td>
              <td className="r dim">
                <When at={at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <ListFoot page={{ total: total.sent + total.received }} one="mail" readAtMs={readAtMs}>
        {next_after !== null && (
          <Link to="/settings/data" search={{ ...filters, after: next_after }} className="btn quiet">
            Older
          </Link>
        )}
      </ListFoot>
    </section>
  );
}

function ofSent({ id, subject, recipients, created_at }: Found["sent"][number]) {
  const [recipient] = recipients;
  const state = recipient === undefined ? "A forward" : wordOf(recipient.status);
  return { id, kind: "Sent", subject, state, at: created_at };
}

function ofReceived({ id, subject, status, received_at }: Found["received"][number]) {
  return { id, kind: "Received", subject: subject ?? "", state: wordOf(status), at: received_at };
}
