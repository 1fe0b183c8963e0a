// The pages behind links: /welcome sets the installation up, /invitation lets somebody in, /join makes an organization, /reset sets a new
// password. The token stands behind the #, which browsers send to nobody; it leaves the address as soon as it is read.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useRouterState } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { Declined, door, type PeopleSchemas, take } from "../api/client.ts";
import { become, type Session, session } from "../api/people.ts";
import { sayError } from "../api/say-error.ts";
import { AskForReset } from "../forms/ask-for-reset.tsx";
import { JoinAsMe } from "../forms/join-as-me.tsx";
import { SignInForm } from "../forms/sign-in.tsx";
import { UseLinkForm } from "../forms/use-link.tsx";
import { actFor } from "../lib/acting.ts";
import { Button } from "../ui/button.tsx";
import { Door } from "../ui/door.tsx";
import { Loading } from "../ui/states.tsx";
import { toast } from "../ui/toast.tsx";

type About = PeopleSchemas["Link"];

export function LinkPage() {
  const token = useToken();
  const isReset = useRouterState({ select: ({ location }) => location.pathname === "/reset" });
  if (token === "" && isReset)
    return (
      <Door title="A new password" below={<Link to="/sign-in">To the sign-in page</Link>}>
        <AskForReset />
      </Door>
    );
  return <LookedUp key={token} token={token} />;
}

function LookedUp({ token }: { token: string }) {
  const [found, set] = useState<{ link?: About; error?: unknown }>({});
  useEffect(() => {
    let isGone = false;
    const tell = (next: typeof found) => isGone || set(next);
    take(door.POST("/dashboard/api/links/look-up", { body: { token: token || "-" } }))
      .then(({ link }) => tell({ link }))
      .catch((error) => tell({ error }));
    return () => {
      isGone = true;
    };
  }, [token]);
  if (found.error) return <NoLink error={found.error} />;
  if (!found.link)
    return (
      <Door title="One moment">
        <Loading rows={3} />
      </Door>
    );
  return <Found token={token} link={found.link} />;
}

/** What stands behind the #, once it is read: later the address has it no more. */
function useToken(): string {
  const hash = useRouterState({ select: ({ location }) => location.hash });
  const [token, keep] = useState(hash);
  useEffect(() => {
    if (hash === "") return;
    keep(hash);
    history.replaceState(history.state, "", location.pathname);
  }, [hash]);
  return token;
}

function NoLink({ error }: { error: unknown }) {
  const { title, text } = sayError(error);
  const isOver = error instanceof Declined && error.status === 404;
  return (
    <Door title={isOver ? "This link no longer works" : title} below={<Link to="/sign-in">To the sign-in page</Link>}>
      <p className="mt-2">{isOver ? "It was used already, or it has expired. Ask for a new one." : text}</p>
    </Door>
  );
}

function Found({ token, link }: { token: string; link: About }) {
  const who = useQuery(session);
  const [hasAccount, setAccount] = useState(false);
  const goIn = useGoIn(link);
  const queries = useQueryClient();
  const me = who.data?.person;
  const isForMe =
    me !== undefined &&
    (link.kind === "set_up" || link.kind === "invitation") &&
    (link.email === null || link.email === me.email);
  const signedIn = (found: Session) => (link.kind === "reset" ? goIn(found) : become(queries, found));
  if (who.isPending)
    return (
      <Door title={titleOf(link)}>
        <Loading rows={3} />
      </Door>
    );
  return (
    <Door title={titleOf(link)}>
      <p className="mt-1 mb-4 text-ink-2">{sentenceOf(link)}</p>
      {isForMe ? (
        <JoinAsMe token={token} person={me} joined={goIn} />
      ) : hasAccount ? (
        <SignInForm email={link.email ?? undefined} signedIn={signedIn} />
      ) : (
        <UseLinkForm token={token} link={link} used={goIn} hasAccount={() => setAccount(true)} />
      )}
      {!isForMe && (link.kind === "set_up" || link.kind === "invitation") && (
        <p className="mt-3">
          <Button look="quiet" className="link" onClick={() => setAccount(!hasAccount)}>
            {hasAccount ? "I have no account yet" : "I have an account already"}
          </Button>
        </p>
      )}
    </Door>
  );
}

/** In, for the organization that was joined last. */
function useGoIn(link: About): (found: Session) => void {
  const queries = useQueryClient();
  const navigate = useNavigate();
  return (found) => {
    const joined =
      link.kind === "sign_up"
        ? found.organizations.at(-1)
        : found.organizations.find(({ id }) => id === link.organization_id);
    if (joined) actFor(joined.id);
    become(queries, found);
    if (link.kind === "reset") toast("Your new password is set. Other sessions have ended.");
    void navigate({ to: "/", replace: true });
  };
}

function titleOf({ kind, organization_name }: About): string {
  if (kind === "reset") return "Set a new password";
  if (kind === "sign_up") return "Your account";
  return kind === "set_up" ? "Set Postern up" : `Join ${organization_name ?? "an organization"}`;
}

function sentenceOf({ kind, email, role }: About): string {
  if (kind === "reset") return `For ${email}. All sessions end when it is set.`;
  if (kind === "sign_up")
    return `For ${email}. Your organization begins in review: test keys work at once, live mail once the operator has approved it.`;
  if (kind === "set_up")
    return "You become the owner of the first organization, and the operator of this installation.";
  return `${email} is invited with the role “${role}”.`;
}
