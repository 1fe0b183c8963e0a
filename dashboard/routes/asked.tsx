// Asks over the page what the server needs of the person before it goes on (lib/asked.ts). The page and its forms stay as they are.
import { useQueryClient } from "@tanstack/react-query";
import { become, type Session, session } from "../api/people.ts";
import { ProveAgain } from "../forms/prove-again.tsx";
import { SignInForm } from "../forms/sign-in.tsx";
import { answerAsked, useAsked } from "../lib/asked.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";

export function AskedOfPerson({ person }: { person: Session["person"] }) {
  const asked = useAsked();
  const giveUp = () => answerAsked(false);
  return (
    <>
      <Dialog title="Is it you?" open={asked === "proof"} close={() => asked === "proof" && giveUp()}>
        <ProveAgain person={person} proved={() => answerAsked(true)} close={giveUp} />
      </Dialog>
      <Dialog title="Your session has ended" open={asked === "sign-in"} close={() => asked === "sign-in" && giveUp()}>
        <SignInAgain email={person.email} />
      </Dialog>
    </>
  );
}

function SignInAgain({ email }: { email: string }) {
  const queries = useQueryClient();
  const leave = () => {
    answerAsked(false);
    become(queries, null);
  };
  const goOn = (found: Session) => {
    queries.setQueryData(session.queryKey, found);
    answerAsked(true);
  };
  return (
    <>
      <p className="mt-1 mb-3">Sign in again, and this page continues where it was.</p>
      <SignInForm email={email} signedIn={goOn} />
      <p className="mt-3">
        <Button look="quiet" className="link" onClick={leave}>
          Sign in as somebody else
        </Button>
      </p>
    </>
  );
}
