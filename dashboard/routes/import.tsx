// Suppressions that another provider kept: a file, what it holds, and adding it.
import { getRouteApi, Link } from "@tanstack/react-router";
import { DropFile, ImportJob } from "../forms/import-suppressions.tsx";
import { PageHead } from "../ui/page.tsx";

const route = getRouteApi("/suppressions/import");

const crumb = (
  <Link to="/suppressions" search={{}} className="crumb">
    Suppressions
  </Link>
);

export function ImportPage() {
  const { job } = route.useSearch();
  const navigate = route.useNavigate();
  return (
    <>
      <PageHead title="Import" crumb={crumb} />
      {job === undefined ? (
        <DropFile started={(id) => void navigate({ search: { job: id } })} />
      ) : (
        <ImportJob id={job} again={() => void navigate({ search: {} })} />
      )}
    </>
  );
}
