// How the mail of one domain is judged: from which score on it is marked, kept or refused, and whom that does not concern.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { domains } from "../../api/queries.ts";
import { SpamSettings } from "../../forms/inbound/spam-settings.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Empty, Loaded } from "../../ui/states.tsx";
import { InboundNav } from "./nav.tsx";
import { PickDomain } from "./pick-domain.tsx";

const route = getRouteApi("/inbound/spam");

export function Spam() {
  const { domain_id } = route.useSearch();
  const navigate = route.useNavigate();
  const owned = useQuery(domains);
  const chosen = domain_id ?? owned.data?.domains.find(({ type }) => type === "inbound" || type === "both")?.id;
  return (
    <>
      <PageHead title="Inbound" />
      <InboundNav />
      <PickDomain value={chosen} pick={(id) => void navigate({ search: { domain_id: id }, replace: true })} receiving />
      <Loaded of={owned}>
        {() =>
          chosen === undefined ? (
            <div className="panel">
              <Empty
                title="No domain receives yet"
                acts={
                  <Link to="/domains" className="btn">
                    To the domains
                  </Link>
                }
              />
            </div>
          ) : (
            <SpamSettings key={chosen} domainId={chosen} />
          )
        }
      </Loaded>
    </>
  );
}
