// Who sends mail in the domain's name, and the reports that say so.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Schemas } from "../../api/client.ts";
import { dmarcReports, dmarcSources } from "../../api/domain-queries.ts";
import { PAGE_ROWS } from "../../api/queries.ts";
import { sayShare } from "../../lib/domain-views.ts";
import type { Tone } from "../../lib/why.ts";
import { ListFoot } from "../../ui/list-foot.tsx";
import { Empty, Loaded } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { When } from "../../ui/when.tsx";
import { CsvButton } from "./csv-button.tsx";

type Source = Schemas["DmarcSource"];
const KINDS: Record<Source["classification"], [Tone, string]> = {
  ours: ["good", "Ours"],
  authorised: ["good", "Authorised"],
  forwarder: ["idle", "Forwarder"],
  unknown: ["warn", "Unknown"],
};

export function DmarcSources({ id, days }: { id: string; days: number }) {
  const list = useQuery(dmarcSources(id, days));
  return (
    <Loaded of={list}>
      {(page) =>
        page.sources.length === 0 ? (
          <Empty title="No source in this time" />
        ) : (
          <>
            <table className="table">
              <caption className="sr-only">Addresses that send, most mail first</caption>
              <thead>
                <tr>
                  <th className="w-[118px] sm:w-[136px]">Kind</th>
                  <th>Address</th>
                  <th className="hide-s w-[28%]">Signs as</th>
                  <th className="r w-[84px]">Mails</th>
                  <th className="r hide-s w-[90px]">DKIM</th>
                  <th className="r hide-s w-[90px]">SPF</th>
                </tr>
              </thead>
              <tbody>
                {page.sources.map((source) => {
                  const [tone, word] = KINDS[source.classification];
                  const seen = `Seen from ${source.first_seen} to ${source.last_seen} by ${source.reporters.join(", ")}`;
                  return (
                    <tr key={source.source_ip} title={seen}>
                      <td>
                        <Tag tone={tone}>{word}</Tag>
                      </td>
                      <td>
                        <code>{source.source_ip}</code>
                      </td>
                      <td className="hide-s dim">{source.dkim_domains.join(", ") || "–"}</td>
                      <td className="r">{source.total.toLocaleString("en")}</td>
                      <td className="r hide-s">{sayShare(source.dkim_rate)}</td>
                      <td className="r hide-s">{sayShare(source.spf_rate)}</td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
            <ListFoot page={page} one="source" readAtMs={list.dataUpdatedAt}>
              <CsvButton
                name="dmarc-sources.csv"
                heads={["Address", "Kind", "Mails", "DKIM share", "SPF share", "Signs as"]}
                rows={page.sources.map((one) => [
                  ...[one.source_ip, one.classification, one.total, one.dkim_rate, one.spf_rate],
                  one.dkim_domains.join(" "),
                ])}
              />
            </ListFoot>
          </>
        )
      }
    </Loaded>
  );
}

const STATUSES: Record<Schemas["DmarcReport"]["status"], [Tone, string]> = {
  counted: ["good", "Counted"],
  unauthenticated: ["warn", "Left out"],
  unreadable: ["bad", "Unreadable"],
};

export function DmarcReports({ id, after }: { id: string; after: string | undefined }) {
  const list = useQuery(dmarcReports(id, after));
  return (
    <Loaded of={list}>
      {(page) =>
        page.reports.length === 0 ? (
          <Empty title="No report here">
            They come by mail, once a day from each receiver. Reports that came elsewhere can be uploaded.
          </Empty>
        ) : (
          <>
            <table className="table">
              <caption className="sr-only">Reports, newest first</caption>
              <thead>
                <tr>
                  <th className="w-[118px] sm:w-[136px]">State</th>
                  <th>Reporter</th>
                  <th className="r w-[84px]">Mails</th>
                  <th className="r hide-s w-[84px]">Pass</th>
                  <th className="r hide-s w-[130px]">Came</th>
                </tr>
              </thead>
              <tbody>
                {page.reports.map((report) => {
                  const [tone, word] = STATUSES[report.status];
                  return (
                    <tr key={report.id} title={report.reason ?? report.report_id ?? undefined}>
                      <td>
                        <Tag tone={tone}>{word}</Tag>
                      </td>
                      <td>{report.org_name ?? report.sender_domain ?? "unknown"}</td>
                      <td className="r">{report.total_messages.toLocaleString("en")}</td>
                      <td className="r hide-s">{report.aligned.toLocaleString("en")}</td>
                      <td className="r dim hide-s">
                        <When at={report.received_at} />
                      </td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
            <ListFoot page={page} one="report" readAtMs={list.dataUpdatedAt}>
              {page.reports.length === PAGE_ROWS && (
                <Link
                  to="/domains/$id/dmarc"
                  params={{ id }}
                  search={{ list: "reports", after: page.reports.at(-1)?.id }}
                  className="btn quiet"
                >
                  Older
                </Link>
              )}
            </ListFoot>
          </>
        )
      }
    </Loaded>
  );
}
