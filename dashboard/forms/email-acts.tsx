// What can be done with an e-mail: try again now, or cancel what was not attempted yet. Both ask the server; neither guesses.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type Schemas, take, v1 } from "../api/client.ts";
import { sayError } from "../api/say-error.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { toast } from "../ui/toast.tsx";

type Email = Schemas["Email"];
const CANCELED = new Set(["scheduled", "queued"]);

/** What the server retries: mail that was given up, but not where the address is at fault. */
function canRetry({ status, recipients }: Email): boolean {
  return status !== "deferred" && recipients.some((one) => isGivenUp(one));
}

function isGivenUp({ status, bounce_type }: Schemas["Recipient"]): boolean {
  return status === "failed" || status === "expired" || (status === "bounced" && bounce_type === "soft");
}

export function EmailActs({ email }: { email: Email }) {
  const [isAsking, ask] = useState(false);
  const { retry, cancel } = useActs(email.id);
  if (email.environment === "test") return null;
  const canCancel = CANCELED.has(email.status) && email.recipients.every(({ attempts }) => attempts === 0);
  return (
    <>
      {canCancel && <Button onClick={() => ask(true)}>Cancel</Button>}
      {canRetry(email) && (
        <Button onClick={() => retry.mutate()} busy={retry.isPending && "Retrying…"}>
          Retry now
        </Button>
      )}
      <Dialog title="Cancel this e-mail?" open={isAsking} close={() => ask(false)}>
        <p>It will not be sent to anybody. This cannot be undone.</p>
        <div className="acts">
          <Button onClick={() => ask(false)}>Keep it</Button>
          <Button
            look="danger"
            busy={cancel.isPending && "Canceling…"}
            onClick={() => cancel.mutate(undefined, { onSettled: () => ask(false) })}
          >
            Cancel the e-mail
          </Button>
        </div>
      </Dialog>
    </>
  );
}

function useActs(id: string) {
  const queries = useQueryClient();
  const after = {
    onSuccess: () => queries.invalidateQueries({ queryKey: ["email", id] }),
    onError: (error: unknown) => {
      const { title, text } = sayError(error);
      toast(`${title}. ${text}`, { bad: true });
    },
  };
  const params = { path: { id } };
  const retry = useMutation({
    ...after,
    mutationFn: () => take(v1.POST("/v1/emails/{id}/retry", { params })),
    onSuccess: () => {
      toast("It is tried again now.");
      return after.onSuccess();
    },
  });
  const cancel = useMutation({
    ...after,
    mutationFn: () => take(v1.POST("/v1/emails/{id}/cancel", { params })),
    onSuccess: () => {
      toast("Canceled.");
      return after.onSuccess();
    },
  });
  return { retry, cancel };
}
