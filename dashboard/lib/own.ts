// Who looks at the page, and for which organization. For pages that stand below routes/signed-in.tsx.
import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { type Session, session } from "../api/people.ts";
import { actingFor } from "./acting.ts";

export type Own = { person: Session["person"]; organization: Session["organizations"][number] };

/** Somebody who signs out is still who they were until the page is gone. */
export function useOwn(): Own {
  const { data } = useQuery(session);
  const before = useRef<Own | null>(null);
  const organization = data ? actingFor(data.organizations) : null;
  if (data && organization !== null) before.current = { person: data.person, organization };
  if (before.current === null) throw new Error("nobody is signed in");
  return before.current;
}
