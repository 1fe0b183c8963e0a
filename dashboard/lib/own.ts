// Who looks at the page, and for which organization. For pages that stand below routes/signed-in.tsx.
import { useQuery } from "@tanstack/react-query";
import { type Session, session } from "../api/people.ts";
import { actingFor } from "./acting.ts";

export type Own = { person: Session["person"]; organization: Session["organizations"][number] };

export function useOwn(): Own {
  const { data } = useQuery(session);
  const organization = data ? actingFor(data.organizations) : null;
  if (!data || organization === null) throw new Error("nobody is signed in");
  return { person: data.person, organization };
}
