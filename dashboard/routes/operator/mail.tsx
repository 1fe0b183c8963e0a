// What came for postmaster@, abuse@ and the other mailboxes of the installation's own names. For operators.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { PeopleSchemas } from "../../api/client.ts";
import { ownMail } from "../../api/operator-queries.ts";
import { SearchField } from "../../forms/search-field.tsx";
import { MAILBOXES, type OwnMailFilters } from "../../lib/operator-filters.ts";
import { saySize } from "../../lib/times.ts";
import { Choice } from "../../ui/choice.tsx";
import { ListFoot } from "../../ui/list-foot.tsx";
import { OperatorNav } from "../../ui/operator-nav.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Empty, Loaded } from "../../ui/states.tsx";
import { When } from "../../ui/when.tsx";

const route = getRouteApi("/operator/mail");

export function OwnMail() {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const list = useQuery(ownMail(filters));
  const change = (changed: Partial<OwnMailFilters>) =>
    void navigate({ search: (before) => ({ ...before, after: undefined, ...changed }), replace: true });
  return (
    <>
      <PageHead title="Mail of the installation" />
      <OperatorNav />
      <div className="filters">
        <SearchField
          label="Search senders, recipients, subjects"
          value={filters.query}
          search={(query) => change({ query })}
        />
        <Choice
          label="Mailbox"
          value={filters.mailbox}
          pick={(mailbox) => change({ mailbox: mailbox as OwnMailFilters["mailbox"] })}
        >
          {MAILBOXES.map((mailbox) => (
            <option key={mailbox} value={mailbox}>
              {mailbox}@
            </option>
          ))}
        </Choice>
      </div>
      <div className="panel" aria-busy={list.isPlaceholderData}>
        <Loaded of={list} rows={8}>
          {(page) => (
            <>
              {page.mails.length === 0 ? <None filters={filters} /> : <Rows mails={page.mails} />}
              <ListFoot page={page} one="mail" readAtMs={list.dataUpdatedAt}>
                {filters.after !== undefined && (
                  <Link to="/operator/mail" search={{ ...filters, after: undefined }} className="btn">
                    Newest
                  </Link>
                )}
                {page.next !== null && (
                  <Link to="/operator/mail" search={{ ...filters, after: page.next }} className="btn quiet">
                    Older
                  </Link>
                )}
              </ListFoot>
            </>
          )}
        </Loaded>
      </div>
    </>
  );
}

function None({ filters }: { filters: OwnMailFilters }) {
  if (Object.keys(filters).length === 0)
    return (
      <Empty title="No mail came for the installation">
        Mail to postmaster@, abuse@, security@ and the feedback addresses of this server's own names comes here.
        Complaints that other providers report are among it.
      </Empty>
    );
  const all = (
    <Link to="/operator/mail" search={{}} className="btn">
      Show all
    </Link>
  );
  return <Empty title={filters.after === undefined ? "No mail fits" : "No older mail"} acts={all} />;
}

function Rows({ mails }: { mails: PeopleSchemas["OperatorMailRow"][] }) {
  return (
    <table className="table">
      <caption className="sr-only">Mail for the installation, newest first</caption>
      <thead>
        <tr>
          <th className="sm:w-[26%]">From</th>
          <th className="hide-s">Subject</th>
          <th className="hide-s w-[24%]">To</th>
          <th className="r hide-s w-[108px]">Size</th>
          <th className="r w-[92px] sm:w-[124px]">Received</th>
        </tr>
      </thead>
      <tbody>
        {mails.map((mail) => (
          <Row key={mail.id} mail={mail} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ mail }: { mail: PeopleSchemas["OperatorMailRow"] }) {
  const from = mail.from_address ?? (mail.envelope_from || "empty (a notice)");
  return (
    <tr>
      <td className="py-2!" title={from}>
        <Link to="/operator/mail/$id" params={{ id: mail.id }} className="row-link">
          {from}
        </Link>
        <div className="show-s truncate text-[12.5px]">{mail.subject || <span className="dim">no subject</span>}</div>
        <div className="show-s dim truncate text-[12.5px]">{mail.recipient}</div>
        {mail.reason !== null && <div className="show-s whitespace-normal text-[12.5px] text-warn">{mail.reason}</div>}
      </td>
      <td className="hide-s" title={mail.reason ?? mail.subject ?? undefined}>
        <div className="truncate">
          {mail.subject || <span className="dim">no subject</span>}
          {mail.has_attachments && <span className="dim"> · files</span>}
        </div>
        {mail.reason !== null && <div className="truncate text-[12.5px] text-warn">{mail.reason}</div>}
      </td>
      <td className="hide-s text-ink-2" title={mail.recipient}>
        {mail.recipient}
      </td>
      <td className="r hide-s">{saySize(mail.size)}</td>
      <td className="r dim">
        <When at={mail.received_at} />
      </td>
    </tr>
  );
}
