// The list of templates: search, which are on, and making one.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "../../api/client.ts";
import { PAGE_ROWS } from "../../api/queries.ts";
import { templates } from "../../api/template-queries.ts";
import { SearchField } from "../../forms/search-field.tsx";
import { NewTemplate } from "../../forms/templates/new-template.tsx";
import type { TemplateFilters } from "../../lib/list-filters.ts";
import { Button } from "../../ui/button.tsx";
import { Choice } from "../../ui/choice.tsx";
import { ListFoot } from "../../ui/list-foot.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Empty, Loaded } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { When } from "../../ui/when.tsx";

const route = getRouteApi("/templates");

export function Templates() {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const [isMaking, make] = useState(false);
  const list = useQuery(templates(filters));
  const change = (changed: Partial<TemplateFilters>) =>
    void navigate({ search: (before) => ({ ...before, after: undefined, ...changed }), replace: true });
  const active = filters.active === undefined ? undefined : filters.active ? "on" : "off";
  return (
    <>
      <PageHead
        title="Templates"
        acts={
          <Button look="primary" onClick={() => make(true)}>
            New template
          </Button>
        }
      />
      <div className="filters">
        <SearchField label="Search name, slug or subject" value={filters.query} search={(query) => change({ query })} />
        <Choice
          label="State"
          value={active}
          pick={(state) => change({ active: state === undefined ? undefined : state === "on" })}
        >
          <option value="on">On</option>
          <option value="off">Off</option>
        </Choice>
      </div>
      <div className="panel" aria-busy={list.isPlaceholderData}>
        <Loaded of={list}>
          {(page) =>
            page.templates.length === 0 ? (
              <None filters={filters} make={() => make(true)} />
            ) : (
              <Rows page={page} readAtMs={list.dataUpdatedAt} />
            )
          }
        </Loaded>
      </div>
      <NewTemplate open={isMaking} close={() => make(false)} />
    </>
  );
}

function None({ filters, make }: { filters: TemplateFilters; make: () => void }) {
  if (Object.keys(filters).length > 0)
    return (
      <Empty
        title="No template fits"
        acts={
          <Link to="/templates" search={{}} className="btn">
            Show all
          </Link>
        }
      >
        Name, slug, subject and description are searched.
      </Empty>
    );
  return (
    <Empty title="No template yet" acts={<Button onClick={make}>Make the first template</Button>}>
      A template is a subject and a body with places for values, such as {"{{name}}"}. A program sends it by its slug.
    </Empty>
  );
}

function Rows({ page, readAtMs }: { page: Schemas["TemplateList"]; readAtMs: number }) {
  const filters = route.useSearch();
  return (
    <>
      <table className="table">
        <caption className="sr-only">Templates, newest first</caption>
        <thead>
          <tr>
            <th>Template</th>
            <th className="hide-s w-[34%]">Subject</th>
            <th className="r hide-s w-[90px]">Variables</th>
            <th className="r hide-s w-[80px]">Version</th>
            <th className="r w-[98px] sm:w-[130px]">Changed</th>
          </tr>
        </thead>
        <tbody>
          {page.templates.map(({ id, name, slug, subject, variables, version, active, updated_at }) => (
            <tr key={id}>
              <td title={`${name} (${slug})`}>
                <Link to="/templates/$id" params={{ id }} search={{}} className="row-link">
                  {name}
                </Link>{" "}
                {!active && <Tag tone="idle">Off</Tag>} <code className="dim hide-s">{slug}</code>
                <div className="show-s dim truncate text-[12.5px]">{subject}</div>
              </td>
              <td className="hide-s text-ink-2" title={subject}>
                {subject}
              </td>
              <td className="r hide-s">{variables.length}</td>
              <td className="r hide-s">{version}</td>
              <td className="r dim">
                <When at={updated_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <ListFoot page={page} one="template" readAtMs={readAtMs}>
        {page.templates.length === PAGE_ROWS && (
          <Link to="/templates" search={{ ...filters, after: page.templates.at(-1)?.id }} className="btn quiet">
            Older
          </Link>
        )}
      </ListFoot>
    </>
  );
}
