// What can be done with an e-mail: try again now, cancel what was not attempted yet, or send the same again to somebody else. All
// ask the server; none guesses.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type Schemas, take, v1 } from "../api/client.ts";
import { emailContent } from "../api/queries.ts";
import { sayError } from "../api/say-error.ts";
import { Button } from "../ui/button.tsx";
import { Dialog, DialogActs } from "../ui/dialog.tsx";
import { toast } from "../ui/toast.tsx";
import { SendOne } from "./send-one.tsx";

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
  const again = <SendAgain email={email} />;
  if (email.environment === "test") return again;
  const canCancel = CANCELED.has(email.status) && email.recipients.every(({ attempts }) => attempts === 0);
  return (
    <>
      {again}
      {canCancel && <Button onClick={() => ask(true)}>Cancel</Button>}
      {canRetry(email) && (
        <Button onClick={() => retry.mutate()} busy={retry.isPending && "Retrying…"}>
          Retry now
        </Button>
      )}
      <Dialog title="Cancel this e-mail?" open={isAsking} close={() => ask(false)}>
        <p>It will not be sent to anybody. This cannot be undone.</p>
        <DialogActs
          close={() => ask(false)}
          leave="Keep it"
          act="Cancel the e-mail"
          look="danger"
          busy={cancel.isPending && "Canceling…"}
          run={() => cancel.mutate(undefined, { onSettled: () => ask(false) })}
        />
      </Dialog>
    </>
  );
}

/** The same subject and bodies to addresses that are asked for, as a test unless the person says otherwise. Files are not kept. */
function SendAgain({ email: { id, subject } }: { email: Email }) {
  const [isOpen, open] = useState(false);
  const { data } = useQuery(emailContent(id));
  const content = typeof data === "object" ? data.content : undefined;
  if (content === undefined || (content.html_body === null && content.text_body === null)) return null;
  const { html_body, text_body, attachments } = content;
  const body = {
    ...{ subject: subject ?? "" },
    ...(html_body === null ? {} : { html_body }),
    ...(text_body === null ? {} : { text_body }),
  };
  const files = attachments.length === 1 ? "Its file is" : `Its ${attachments.length} files are`;
  return (
    <>
      <Button look="quiet" onClick={() => open(true)}>
        Send again to…
      </Button>
      <SendOne
        title={`Send “${subject || "No subject"}” again`}
        note={attachments.length === 0 ? undefined : `${files} not sent along.`}
        open={isOpen}
        close={() => open(false)}
        content={body}
      />
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
