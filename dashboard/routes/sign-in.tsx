// The sign-in page. `to` is where the person wanted to go.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, Navigate, useRouter, useSearch } from "@tanstack/react-router";
import { become, session, waysIn } from "../api/people.ts";
import { SignInForm } from "../forms/sign-in.tsx";
import { Door } from "../ui/door.tsx";
import { ProviderLink } from "../ui/provider-link.tsx";
import { Loaded } from "../ui/states.tsx";

/** What came of a sign-in at the provider. */
const PROBLEMS = {
  oidc_failed: "Signing in there did not work. Try again, or ask who runs this server.",
  oidc_unverified:
    "Your provider does not say that your e-mail address is verified. Ask the person who looks after your account there.",
  oidc_uninvited: "Nobody has invited your address. Ask an owner of your organization.",
  oidc_unavailable: "Your provider does not answer at the moment. Try again shortly.",
} as const;

export function SignIn() {
  const { to = "/", problem } = useSearch({ from: "/sign-in" });
  const queries = useQueryClient();
  const router = useRouter();
  const who = useQuery(session);
  const ways = useQuery(waysIn).data;
  if (who.data) return <Navigate to={to} replace />;
  return (
    <Door
      title="Sign in"
      below={
        <>
          {ways?.mails ? (
            <Link to="/reset">I do not know my password</Link>
          ) : (
            "Cannot sign in? The operator of this server can make you a link for a new password."
          )}
          {ways?.sign_up === "open" && ways.mails && (
            <>
              <br />
              <Link to="/sign-up">Make an account</Link>
            </>
          )}
        </>
      }
    >
      <Loaded of={who} rows={3}>
        {() => (
          <>
            {problem !== undefined && (
              <p role="alert" className="problem mt-3">
                {PROBLEMS[problem]}
              </p>
            )}
            <SignInForm
              signedIn={(found) => {
                become(queries, found);
                router.history.replace(to);
              }}
            />
            <div className="mt-3 grid">
              <ProviderLink to={to} say={(name) => `Sign in with ${name}`} />
            </div>
          </>
        )}
      </Loaded>
    </Door>
  );
}

/** A page of the dashboard, whatever the address says: never another site. */
export function readSignIn(search: Record<string, unknown>): { to?: string; problem?: keyof typeof PROBLEMS } {
  const { to } = search;
  const isOurs = typeof to === "string" && /^\/(?![/\\])/.test(to) && !to.startsWith("/sign-in");
  const problem = (Object.keys(PROBLEMS) as (keyof typeof PROBLEMS)[]).find((name) => name === search.problem);
  return { ...(isOurs ? { to } : {}), ...(problem === undefined ? {} : { problem }) };
}
