// Who looks at the page, and for which organization: what the page was opened with (routes/signed-in.tsx), so that nothing on it
// outlives the person who signs out.
import { createContext, useContext } from "react";
import type { Session } from "../api/people.ts";

export type Own = { person: Session["person"]; organization: Session["organizations"][number] };

export const OwnContext = createContext<Own | null>(null);

/** A viewer changes nothing; what an operator does is beside the roles. */
export function useMayChange(): boolean {
  return useContext(OwnContext)?.organization.role !== "viewer";
}

/** For pages that stand below routes/signed-in.tsx. */
export function useOwn(): Own {
  const own = useContext(OwnContext);
  if (own === null) throw new Error("this page is not below routes/signed-in.tsx");
  return own;
}
