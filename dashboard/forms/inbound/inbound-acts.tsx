// What can be done with a received mail: process it again, let it out of quarantine, delete it.
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { useAct } from "../../lib/act.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";

type Given = { mail: Schemas["InboundEmail"] };
type Asked = "delete" | "release" | null;

export function InboundActs({ mail: { id, status, from_address } }: Given) {
  const [asked, ask] = useState<Asked>(null);
  const { replay, release, remove } = useActs(id);
  const close = () => ask(null);
  const isSettled = status !== "received" && status !== "processing";
  return (
    <>
      <Button look="quiet" onClick={() => ask("delete")}>
        Delete
      </Button>
      {isSettled && status !== "quarantined" && (
        <Button busy={replay.isPending && "Starting…"} onClick={() => replay.mutate(undefined)}>
          Process again
        </Button>
      )}
      {status === "quarantined" && (
        <Button look="primary" onClick={() => ask("release")}>
          Release
        </Button>
      )}
      <Confirm
        title="Let it out of quarantine?"
        act="Release it"
        open={asked === "release"}
        busy={release.isPending}
        close={close}
        confirm={() => release.mutate(undefined, { onSettled: close })}
      >
        It is delivered as its alias and rules say now, to endpoints and forwards. Its sender is{" "}
        {from_address ?? "unknown"}.
      </Confirm>
      <Confirm
        title="Delete this mail?"
        act="Delete the mail"
        open={asked === "delete"}
        busy={remove.isPending}
        close={close}
        confirm={() => remove.mutate(undefined, { onSettled: close })}
      >
        The message and its files are gone for good. Deliveries of its events that still wait fail.
      </Confirm>
    </>
  );
}

function useActs(id: string) {
  const navigate = useNavigate();
  const params = { path: { id } };
  const refresh = [["inbound-email", id], ["inbound"]];
  const replay = useAct({
    run: () => take(v1.POST("/v1/inbound-emails/{id}/replay", { params })),
    refresh,
    done: () => "It is processed again.",
  });
  const release = useAct({
    run: () => take(v1.POST("/v1/inbound-emails/{id}/release", { params })),
    refresh,
    done: () => "It is released.",
  });
  const remove = useAct({
    run: () => take(v1.DELETE("/v1/inbound-emails/{id}", { params })),
    refresh: [["inbound"]],
    done: () => {
      void navigate({ to: "/inbound", search: {} });
      return "The mail is deleted.";
    },
  });
  return { replay, release, remove };
}
