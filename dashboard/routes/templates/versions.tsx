// The versions of a template: who made which and when, two of them compared, and making an older one the current one again.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { PAGE_ROWS } from "../../api/queries.ts";
import { template, templateVersion, templateVersions } from "../../api/template-queries.ts";
import { Difference } from "../../editor/difference.tsx";
import { useAct } from "../../lib/act.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { ListFoot } from "../../ui/list-foot.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Loaded } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { When } from "../../ui/when.tsx";

const route = getRouteApi("/templates/$id/versions");
type Template = Schemas["Template"];
type Listed = Schemas["ListedTemplateVersion"];
type Version = Schemas["TemplateVersion"];

export function Versions() {
  const { id } = route.useParams();
  const query = useQuery(template(id));
  const found = query.data?.template;
  const crumb = (
    <>
      <Link to="/templates" search={{}} className="crumb">
        Templates
      </Link>
      <span className="dim" aria-hidden="true">
        /
      </span>
      <Link to="/templates/$id" params={{ id }} search={{}} className="crumb">
        {found?.name ?? "Template"}
      </Link>
    </>
  );
  return (
    <>
      <PageHead title="Versions" crumb={crumb} />
      {found === undefined ? (
        <div className="panel">
          <Loaded of={query}>{() => null}</Loaded>
        </div>
      ) : (
        <div className="halves">
          <List template={found} />
          <Compared template={found} />
        </div>
      )}
    </>
  );
}

/** What is compared when the address names nothing: the current version, with the one before. */
function useCompared({ version: current }: Template): { version: number; other: number } {
  const { version = Math.max(1, current - 1), with: other = current } = route.useSearch();
  return { version, other };
}

function List({ template: found }: { template: Template }) {
  const { before } = route.useSearch();
  const list = useQuery(templateVersions(found.id, before));
  return (
    <section className="panel" aria-busy={list.isPlaceholderData}>
      <Loaded of={list}>
        {(page) => (
          <>
            <table className="table">
              <caption className="sr-only">Versions, newest first</caption>
              <thead>
                <tr>
                  <th className="w-[92px]">Version</th>
                  <th>Subject</th>
                  <th className="hide-s w-[150px]">By</th>
                  <th className="r w-[96px]">Made</th>
                </tr>
              </thead>
              <tbody>
                {page.versions.map((one) => (
                  <Row key={one.version} one={one} template={found} />
                ))}
              </tbody>
            </table>
            <ListFoot page={page} one="version" readAtMs={list.dataUpdatedAt}>
              {page.versions.length === PAGE_ROWS && (
                <Link
                  to="/templates/$id/versions"
                  params={{ id: found.id }}
                  search={(now) => ({ ...now, before: page.versions.at(-1)?.version })}
                  className="btn quiet"
                >
                  Older
                </Link>
              )}
            </ListFoot>
          </>
        )}
      </Loaded>
    </section>
  );
}

function Row({ one, template: found }: { one: Listed; template: Template }) {
  const compared = useCompared(found);
  const isCurrent = one.version === found.version;
  return (
    <tr {...(compared.version === one.version ? { "aria-current": true } : {})}>
      <td className="num">
        <Link
          to="/templates/$id/versions"
          params={{ id: found.id }}
          search={(now) => ({ ...now, version: one.version })}
          className="row-link"
          aria-label={`Compare version ${one.version}`}
        >
          {one.version}
        </Link>{" "}
        {isCurrent && <span className="dim">current</span>}
      </td>
      <td title={one.subject}>{one.subject}</td>
      <td className="hide-s text-ink-2" title={one.created_by ?? undefined}>
        {one.created_by ?? <span className="dim">not noted</span>}
      </td>
      <td className="r dim">
        <When at={one.created_at} />
      </td>
    </tr>
  );
}

function Compared({ template: found }: { template: Template }) {
  const { version, other } = useCompared(found);
  const [one, two] = [useQuery(templateVersion(found.id, version)), useQuery(templateVersion(found.id, other))];
  const [isAsked, ask] = useState(false);
  const restore = useAct({
    run: (from: Version) =>
      take(v1.PUT("/v1/templates/{id}", { params: { path: { id: found.id } }, body: bodyOf(from) })),
    refresh: [["templates"]],
    done: ({ template: { version: number } }) => {
      ask(false);
      return `Version ${version} is the current one again, as version ${number}.`;
    },
  });
  return (
    <section className="panel pad" aria-label="Comparison">
      <div className="mb-3 flex flex-wrap items-center gap-3">
        <h2 className="grow">
          Version {version} → {other}
          {other === found.version && <span className="dim font-normal"> (current)</span>}
        </h2>
        {version !== found.version && (
          <Button changes disabled={one.data === undefined} onClick={() => ask(true)}>
            Make version {version} current
          </Button>
        )}
        {version === found.version && <Tag tone="good">Current</Tag>}
      </div>
      <Loaded of={one} rows={4}>
        {({ version: before }) => (
          <Loaded of={two} rows={4}>
            {({ version: after }) => <Parts before={before} after={after} />}
          </Loaded>
        )}
      </Loaded>
      <Confirm
        title={`Make version ${version} the current one?`}
        act="Make it current"
        open={isAsked}
        busy={restore.isPending}
        close={() => ask(false)}
        confirm={() => one.data && restore.mutate(one.data.version)}
      >
        It becomes version {found.version + 1}: mail sent from then on is made of it. No version is lost.
      </Confirm>
    </section>
  );
}

/** The API takes what was declared; all else is found in the sources again. */
function bodyOf({ subject, html_body, text_body, variables, declared }: Version): Schemas["UpdateTemplateRequest"] {
  const own = declared === null ? null : variables.filter(({ name }) => declared.includes(name));
  return { subject, html_body, text_body, variables: own };
}

const PARTS = [
  ["subject", "Subject"],
  ["html_body", "HTML"],
  ["text_body", "Text"],
] as const;

function Parts({ before, after }: { before: Version; after: Version }) {
  return (
    <div className="stack">
      {PARTS.map(([name, word]) => (
        <div key={name}>
          <h3 className="mb-1 font-normal! text-ink-2">{word}</h3>
          <Difference before={before[name] ?? ""} after={after[name] ?? ""} label={`Difference of ${word}`} />
        </div>
      ))}
    </div>
  );
}
