// Taking an invitation with the account that one has, and is signed in with.
import { door, take } from "../api/client.ts";
import type { Session } from "../api/people.ts";
import { useAttempt } from "../lib/attempt.ts";
import { Button } from "../ui/button.tsx";
import { Problem } from "../ui/problem.tsx";

type Given = { token: string; person: Session["person"]; joined: (session: Session) => void };

export function JoinAsMe({ token, person, joined }: Given) {
  const { attempt, isBusy, error } = useAttempt(async (body: { token: string }) =>
    joined(await take(door.POST("/dashboard/api/links/use", { body }))),
  );
  return (
    <>
      <p>You are signed in as {person.email}.</p>
      <Problem error={error} />
      <div className="acts">
        <Button look="primary" busy={isBusy && "Joining…"} onClick={() => attempt({ token })}>
          Join
        </Button>
      </div>
    </>
  );
}
