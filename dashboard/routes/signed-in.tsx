// The pages that need somebody: who is not signed in is asked to, and comes back to the same page.
import { useQuery } from "@tanstack/react-query";
import { Navigate, useRouterState } from "@tanstack/react-router";
import { session } from "../api/people.ts";
import { actingFor } from "../lib/acting.ts";
import { OwnContext } from "../lib/own.ts";
import { Door } from "../ui/door.tsx";
import { Failed } from "../ui/states.tsx";
import { AskedOfPerson } from "./asked.tsx";
import { Shell } from "./shell.tsx";
import { SignOut } from "./who.tsx";

export function SignedIn() {
  const who = useQuery(session);
  const href = useRouterState({ select: ({ location, resolvedLocation }) => (resolvedLocation ?? location).href });
  if (who.data === undefined)
    return who.error ? (
      <Door title="Postern">
        <Failed error={who.error} retry={() => void who.refetch()} />
      </Door>
    ) : null;
  if (who.data === null) return <Navigate to="/sign-in" search={href === "/" ? {} : { to: href }} replace />;
  const organization = actingFor(who.data.organizations);
  if (organization === null) return <Nowhere email={who.data.person.email} />;
  return (
    <OwnContext value={{ person: who.data.person, organization }}>
      <Shell who={who.data} />
      <AskedOfPerson person={who.data.person} />
    </OwnContext>
  );
}

function Nowhere({ email }: { email: string }) {
  return (
    <Door title="No organization">
      <p className="mt-2 mb-3">
        You are signed in as {email}, and belong to no organization. Ask an owner to invite you; the invitation’s link
        brings you in.
      </p>
      <SignOut />
    </Door>
  );
}
