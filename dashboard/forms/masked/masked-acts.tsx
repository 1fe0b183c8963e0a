// What can be done with a masked address: change it, switch it off and on, delete it, restore it within 30 days.
import { useState } from "react";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { useAct } from "../../lib/act.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { EditMasked } from "./edit-masked.tsx";

export function MaskedActs({ alias }: { alias: Schemas["MaskedAlias"] }) {
  const [asked, ask] = useState<"change" | "delete" | null>(null);
  const [isDeleted, setDeleted] = useState(false);
  const params = { path: { id: alias.id } };
  const refresh = [["masked"]];
  const switching = useAct({
    run: (active: boolean) => take(v1.PUT("/v1/masked/aliases/{id}", { params, body: { active } })),
    refresh,
    done: (_out, active) => (active ? "It forwards again." : "It is off."),
  });
  const removing = useAct({
    run: () => take(v1.DELETE("/v1/masked/aliases/{id}", { params })),
    refresh: [["masked", "aliases"]],
    done: () => {
      setDeleted(true);
      return `${alias.email} is deleted.`;
    },
  });
  const restoring = useAct({
    run: () => take(v1.POST("/v1/masked/aliases/{id}/restore", { params })),
    refresh,
    done: () => {
      setDeleted(false);
      return `${alias.email} is back.`;
    },
  });
  if (isDeleted)
    return (
      <Button busy={restoring.isPending && "Restoring…"} onClick={() => restoring.mutate(undefined)}>
        Restore
      </Button>
    );
  return (
    <>
      <Button look="quiet" onClick={() => ask("delete")}>
        Delete
      </Button>
      <Button disabled={switching.isPending} onClick={() => switching.mutate(!alias.active)}>
        {alias.active ? "Switch off" : "Switch on"}
      </Button>
      <Button onClick={() => ask("change")}>Change</Button>
      <EditMasked alias={alias} open={asked === "change"} close={() => ask(null)} />
      <Confirm
        title={`Delete ${alias.email}?`}
        act="Delete the address"
        open={asked === "delete"}
        busy={removing.isPending}
        close={() => ask(null)}
        confirm={() => removing.mutate(undefined, { onSettled: () => ask(null) })}
      >
        Mail to it is refused, and the address is never given out again. It can be restored within 30 days.
      </Confirm>
    </>
  );
}
