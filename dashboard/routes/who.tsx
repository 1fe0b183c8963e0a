// Who is signed in, for which organization they act, and the way out.
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { door, take } from "../api/client.ts";
import { become, type Session, session } from "../api/people.ts";
import { actFor, actingFor } from "../lib/acting.ts";
import { useAttempt } from "../lib/attempt.ts";
import { chooseTheme, type Theme, useTheme } from "../lib/theme.ts";
import { Button } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { Problem } from "../ui/problem.tsx";

export function Who({ who }: { who: Session }) {
  return (
    <div className="mt-auto grid gap-2">
      <ThemeChoice />
      <div className="grid gap-1 border-t border-line px-2 pt-3 pb-1 text-[13px]">
        <OrganizationChoice organizations={who.organizations} />
        <div className="truncate" title={who.person.email}>
          {who.person.name || who.person.email}
        </div>
        <SignOut />
      </div>
    </div>
  );
}

/** A choice where there is one. */
function OrganizationChoice({ organizations }: Pick<Session, "organizations">) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const acting = actingFor(organizations);
  const choose = async (id: string) => {
    actFor(id);
    await navigate({ to: "/" });
    // What was read is the other organization's.
    queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== "session" });
    await queries.invalidateQueries({ queryKey: session.queryKey });
  };
  if (acting === null) return null;
  if (organizations.length === 1)
    return (
      <div className="truncate font-medium" title={acting.name}>
        {acting.name}
      </div>
    );
  return (
    <select
      aria-label="Organization"
      className="input w-full"
      value={acting.id}
      onChange={(event) => void choose(event.target.value)}
    >
      {organizations.map(({ id, name }) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </select>
  );
}

export function SignOut() {
  const queries = useQueryClient();
  const { attempt, isBusy, error } = useAttempt(async () => {
    await take(door.POST("/dashboard/api/sign-out"));
    become(queries, null);
  });
  return (
    <>
      <Button
        look="quiet"
        className="link justify-self-start"
        busy={isBusy && "Signing out…"}
        onClick={() => attempt(undefined)}
      >
        Sign out
      </Button>
      <Problem error={error} />
    </>
  );
}

const NEXT_THEME: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };

function ThemeChoice() {
  const theme = useTheme();
  return (
    <Button look="quiet" className="justify-start" onClick={() => chooseTheme(NEXT_THEME[theme])}>
      <Icon name="sun" />
      Theme: {theme}
    </Button>
  );
}
