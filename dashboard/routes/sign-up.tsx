// The page where strangers sign up, where the operator lets them.
import { useQuery } from "@tanstack/react-query";
import { Link, Navigate } from "@tanstack/react-router";
import { session, waysIn } from "../api/people.ts";
import { SignUpForm } from "../forms/sign-up.tsx";
import { Door } from "../ui/door.tsx";
import { Loaded } from "../ui/states.tsx";

export function SignUp() {
  const who = useQuery(session);
  const ways = useQuery(waysIn);
  if (who.data) return <Navigate to="/" replace />;
  return (
    <Door title="Make an account" below={<Link to="/sign-in">I have an account already</Link>}>
      <Loaded of={ways} rows={3}>
        {({ sign_up, mails }) =>
          sign_up !== "open" ? (
            <p className="mt-2">
              {sign_up === "invite"
                ? "Accounts are made by invitation here: the operator of this server sends you a link."
                : "Nobody signs up at this server. An owner of your organization can invite you."}
            </p>
          ) : mails ? (
            <SignUpForm />
          ) : (
            <p className="mt-2">This server cannot mail yet, so no address can be confirmed. Try again later.</p>
          )
        }
      </Loaded>
    </Door>
  );
}
