// What can be done with mail that failed: download it, send it again once, delete it. What keeps it from leaving is said with the
// way to mend it.
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { sayError } from "../../api/say-error.ts";
import { useAct } from "../../lib/act.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { Dialog, DialogActs } from "../../ui/dialog.tsx";
import { DownloadButton } from "../download-button.tsx";

type Failed = Schemas["MaskedFailed"];
const REFRESH = [["masked", "failed"]] as const;

/** Whom it was for. */
export function recipientOf({ kind, contact, destination }: Failed): string {
  return (kind === "reply" ? contact : destination) ?? "its recipient";
}

export function FailedActs({ mail }: { mail: Failed }) {
  const [asked, ask] = useState<"send" | "delete" | null>(null);
  const { id } = mail;
  const close = () => ask(null);
  const removing = useAct({
    run: () => take(v1.DELETE("/v1/masked/failed/{id}", { params: { path: { id } } })),
    refresh: REFRESH,
    done: () => "The mail is deleted.",
  });
  return (
    <>
      <DownloadButton
        label="Download"
        what={`the mail to ${recipientOf(mail)}`}
        name={`${id}.eml`}
        fetch={() => take(v1.GET("/v1/masked/failed/{id}/raw", { params: { path: { id } }, parseAs: "blob" }))}
      />
      <Button changes look="quiet" onClick={() => ask("send")} aria-label={`Send again to ${recipientOf(mail)}`}>
        Send again
      </Button>
      <Button changes look="quiet" onClick={() => ask("delete")} aria-label={`Delete the mail to ${recipientOf(mail)}`}>
        Delete
      </Button>
      <Dialog title={`Send it again to ${recipientOf(mail)}?`} open={asked === "send"} close={close}>
        <SendAgain mail={mail} close={close} />
      </Dialog>
      <Confirm
        title={`Delete the mail to ${recipientOf(mail)}?`}
        act="Delete the mail"
        open={asked === "delete"}
        busy={removing.isPending}
        close={close}
        confirm={() => removing.mutate(undefined, { onSettled: close })}
      >
        It cannot be sent again, nor downloaded. Its author learns nothing of it.
      </Confirm>
    </>
  );
}

function SendAgain({ mail, close }: { mail: Failed; close: () => void }) {
  const { id, alias, kind } = mail;
  const sending = useAct({
    run: () => take(v1.POST("/v1/masked/failed/{id}/send", { params: { path: { id } } })),
    refresh: [...REFRESH, ["masked", "alias", mail.alias_id]],
    isErrorShown: true,
    done: () => {
      close();
      return "The mail is on its way again.";
    },
  });
  return (
    <>
      <p>
        {kind === "reply" ? `It leaves from ${alias}, as before.` : `It is the mail that came for ${alias}.`} The rules
        and limits of now hold. It works once; mail that fails again is kept again.
      </p>
      {sending.error !== null && <Declined error={sending.error} mail={mail} />}
      <DialogActs
        close={close}
        act="Send again"
        busy={sending.isPending && "Sending…"}
        run={() => sending.mutate(undefined)}
      />
    </>
  );
}

function Declined({ error, mail: { alias, alias_id, destination } }: { error: unknown; mail: Failed }) {
  return (
    <div role="alert" className="problem mt-3">
      <p>It was not sent. {sayError(error).text}</p>
      <p className="mt-1">
        <Link to="/masked/$id" params={{ id: alias_id }} search={{}} className="underline underline-offset-2">
          Look at {alias}
        </Link>
        {destination !== null && (
          <>
            {" · "}
            <Link to="/masked/destinations" search={{ email: destination }} className="underline underline-offset-2">
              Look at its mailbox
            </Link>
          </>
        )}
      </p>
    </div>
  );
}
