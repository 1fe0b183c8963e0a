// The sign-in page. `to` is where the person wanted to go.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Navigate, useRouter, useSearch } from "@tanstack/react-router";
import { become, session } from "../api/people.ts";
import { SignInForm } from "../forms/sign-in.tsx";
import { Door } from "../ui/door.tsx";
import { Loaded } from "../ui/states.tsx";

export function SignIn() {
  const { to = "/" } = useSearch({ from: "/sign-in" });
  const queries = useQueryClient();
  const router = useRouter();
  const who = useQuery(session);
  if (who.data) return <Navigate to={to} replace />;
  return (
    <Door
      title="Sign in"
      below="No way in any more? An owner, or who runs this server, can make you a link for a new password."
    >
      <Loaded of={who} rows={3}>
        {() => (
          <SignInForm
            signedIn={(found) => {
              become(queries, found);
              router.history.replace(to);
            }}
          />
        )}
      </Loaded>
    </Door>
  );
}

/** A page of ours, whatever the address says: never another site. */
export function readSignIn(search: Record<string, unknown>): { to?: string } {
  const { to } = search;
  return typeof to === "string" && /^\/(?![/\\])/.test(to) && !to.startsWith("/sign-in") ? { to } : {};
}
