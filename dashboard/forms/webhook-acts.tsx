// What can be done with an endpoint. Rotating in the dashboard stops the old secret at once; the API can let both sign for a while.
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { type Schemas, take, v1 } from "../api/client.ts";
import { useAct } from "../lib/act.ts";
import { Button } from "../ui/button.tsx";
import { Confirm } from "../ui/confirm.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { SecretOnce } from "../ui/secret-once.tsx";
import { ChangeWebhook } from "./add-webhook.tsx";
import { ReplaySpan } from "./replay-span.tsx";

type Asked = "change" | "rotate" | "delete" | "replay" | null;
type Given = { webhook: Schemas["Webhook"] };

export function WebhookActs({ webhook }: Given) {
  const [asked, ask] = useState<Asked>(null);
  const [secret, keep] = useState<string | null>(null);
  const close = () => ask(null);
  const { test, rotate, remove } = useActs(webhook, (made) => {
    close();
    keep(made);
  });
  return (
    <>
      <Button look="quiet" onClick={() => ask("delete")}>
        Delete
      </Button>
      <Button look="quiet" onClick={() => ask("replay")}>
        Replay a span
      </Button>
      <Button onClick={() => ask("change")}>Change</Button>
      <Button onClick={() => ask("rotate")}>Rotate secret</Button>
      <Button busy={test.isPending && "Sending…"} onClick={() => test.mutate(undefined)}>
        Send a test
      </Button>
      <ChangeWebhook webhook={webhook} open={asked === "change"} close={close} />
      <ReplaySpan id={webhook.id} open={asked === "replay"} close={close} />
      <Confirm
        title="Rotate the signing secret?"
        act="Rotate now"
        open={asked === "rotate"}
        busy={rotate.isPending}
        close={close}
        confirm={() => rotate.mutate(undefined, { onSettled: close })}
      >
        The old secret stops at once. Until your program has the new one, it refuses what Postern sends, and Postern
        tries again. To let both sign for a day, rotate through the API.
      </Confirm>
      <Confirm
        title="Delete this endpoint?"
        act="Delete the endpoint"
        open={asked === "delete"}
        busy={remove.isPending}
        close={close}
        confirm={() => remove.mutate(undefined, { onSettled: close })}
      >
        Nothing more is posted to {webhook.webhook_url}. Deliveries that still wait are not sent.
      </Confirm>
      <Dialog title="The new secret" open={secret !== null} close={() => keep(null)}>
        {secret !== null && <SecretOnce secret={secret} what="signing secret" done={() => keep(null)} />}
      </Dialog>
    </>
  );
}

function useActs({ id }: Schemas["Webhook"], keep: (secret: string) => void) {
  const navigate = useNavigate();
  const params = { path: { id } };
  const refresh = [["webhooks"]];
  const test = useAct({
    run: () => take(v1.POST("/v1/webhooks/{id}/test", { params, body: {} })),
    refresh,
    done: () => "A test is on its way.",
  });
  const rotate = useAct({
    run: () => take(v1.POST("/v1/webhooks/{id}/rotate", { params, body: { grace_seconds: 0 } })),
    refresh,
    done: ({ secret }) => {
      keep(secret);
      rotate.reset();
      return undefined;
    },
  });
  const remove = useAct({
    run: () => take(v1.DELETE("/v1/webhooks/{id}", { params })),
    refresh,
    done: () => {
      void navigate({ to: "/webhooks" });
      return "The endpoint is deleted.";
    },
  });
  return { test, rotate, remove };
}
