// How mail to the domain is judged.
import { getRouteApi } from "@tanstack/react-router";
import { SpamSettings } from "../../forms/inbound/spam-settings.tsx";
import { DomainPage } from "./page.tsx";

const route = getRouteApi("/domains/$id/spam");

export function DomainSpamPage() {
  const { id } = route.useParams();
  return (
    <DomainPage id={id} needs="receiving">
      {() => <SpamSettings domainId={id} />}
    </DomainPage>
  );
}
