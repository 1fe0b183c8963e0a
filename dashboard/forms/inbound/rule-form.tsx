// The form of a routing rule. The server judges the conditions and names the place of what is wrong.
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { Declined, type Schemas, take, v1 } from "../../api/client.ts";
import { fieldProblem, useAct } from "../../lib/act.ts";
import { type GroupDraft, toMatch } from "../../lib/rule-tree.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { Field } from "../../ui/field.tsx";
import { ConditionTree } from "./condition-tree.tsx";
import { MailAction, readMailAction } from "./mail-action.tsx";

type Given = {
  tree: GroupDraft;
  set: (tree: GroupDraft) => void;
  domainId: string;
  rule?: Schemas["InboundRule"];
};

export function RuleForm({ tree, set, domainId, rule }: Given) {
  const navigate = useNavigate();
  const [isAsking, ask] = useState(false);
  const back = () => void navigate({ to: "/inbound/rules", search: { domain_id: domainId } });
  const saving = useAct({
    run: (body: Schemas["UpdateInboundRuleRequest"] & { name: string; action: Schemas["InboundRule"]["action"] }) =>
      rule === undefined
        ? take(v1.POST("/v1/inbound-rules", { body: { ...body, domain_id: domainId } }))
        : take(v1.PATCH("/v1/inbound-rules/{id}", { params: { path: { id: rule.id } }, body })),
    refresh: [["rules"]],
    done: (_out, { name }) => {
      back();
      return `${name} is saved.`;
    },
  });
  const removing = useAct({
    run: () => take(v1.DELETE("/v1/inbound-rules/{id}", { params: { path: { id: rule?.id ?? "" } } })),
    refresh: [["rules", domainId]],
    done: () => {
      back();
      return "The rule is deleted.";
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const words = { name: String(form.get("name") ?? "").trim(), active: form.get("active") === "on" };
    saving.mutate({ ...words, ...readMailAction(form), match: toMatch(tree) });
  };
  return (
    <form onSubmit={submit} className="panel pad grid gap-4" noValidate>
      <Field label="Name" problem={fieldProblem(saving.error, "name")}>
        {(bound) => <input {...bound} name="name" defaultValue={rule?.name} autoComplete="off" />}
      </Field>
      <div>
        <div className="mb-1 text-[12.5px] text-ink-2">Conditions</div>
        <ConditionTree tree={tree} set={set} problem={conditionProblem(saving.error)} />
      </div>
      <MailAction before={rule} error={saving.error} sent={saving.variables} />
      <label className="flex items-center gap-2">
        <input type="checkbox" name="active" defaultChecked={rule?.active ?? true} />
        The rule is on
      </label>
      <div className="acts mt-0!">
        <Button changes look="primary" type="submit" busy={saving.isPending && "Saving…"}>
          Save the rule
        </Button>
        {rule && (
          <Button changes look="quiet" onClick={() => ask(true)}>
            Delete
          </Button>
        )}
      </div>
      <Confirm
        title={`Delete ${rule?.name}?`}
        act="Delete the rule"
        open={isAsking}
        busy={removing.isPending}
        close={() => ask(false)}
        confirm={() => removing.mutate(undefined, { onSettled: () => ask(false) })}
      >
        Mail that comes from now on is judged by the other rules. What it decided stays as it is.
      </Confirm>
    </form>
  );
}

/** What the server says of the conditions, such as `match.all[1].value`. */
export function conditionProblem(error: unknown): string | undefined {
  const field = error instanceof Declined ? error.body.field : undefined;
  return field?.startsWith("match") ? fieldProblem(error, field) : undefined;
}
