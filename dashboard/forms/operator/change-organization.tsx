// An organization's name, plan and own limits. An empty limit is the plan's again.
import type { FormEvent } from "react";
import type { PeopleSchemas } from "../../api/client.ts";
import { fieldProblem } from "../../lib/act.ts";
import { wordOf } from "../../lib/states.ts";
import { Dialog, DialogActs } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";
import { useSettle } from "./settle.ts";

type Organization = PeopleSchemas["OperatedOrganization"];
const PLANS = ["free", "starter", "growth", "scale", "enterprise"] as const;
const LIMITS = [
  { name: "monthly_quota", label: "Mails a month" },
  { name: "requests_per_second", label: "Requests a second" },
] as const;

export function ChangeOrganization({ organization, close }: { organization: Organization | null; close: () => void }) {
  return (
    <Dialog title={`Change ${organization?.name ?? ""}`} open={organization !== null} close={close}>
      {organization && <Form organization={organization} close={close} />}
    </Dialog>
  );
}

function Form({ organization, close }: { organization: Organization; close: () => void }) {
  const settle = useSettle(close);
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string) => String(form.get(name) ?? "").trim();
    const limit = (name: string) => (text(name) === "" ? null : Number(text(name)));
    const plan = PLANS.find((one) => one === text("plan")) ?? organization.plan;
    settle.mutate({
      ...{ id: organization.id, name: text("name"), plan },
      ...{ monthly_quota: limit("monthly_quota"), requests_per_second: limit("requests_per_second") },
    });
  };
  return (
    <form onSubmit={submit} className="form" noValidate>
      <Field label="Name" problem={fieldProblem(settle.error, "name")}>
        {(bound) => (
          <input {...bound} name="name" defaultValue={organization.name} maxLength={191} autoComplete="off" />
        )}
      </Field>
      <Field label="Plan">
        {(bound) => (
          <select {...bound} name="plan" defaultValue={organization.plan}>
            {PLANS.map((plan) => (
              <option key={plan} value={plan}>
                {wordOf(plan)}
              </option>
            ))}
          </select>
        )}
      </Field>
      {LIMITS.map(({ name, label }) => (
        <Field key={name} label={label} help="Empty: what the plan has." problem={fieldProblem(settle.error, name)}>
          {(bound) => (
            <input
              {...bound}
              name={name}
              type="number"
              min={0}
              defaultValue={organization.own.includes(name) ? organization[name] : ""}
              placeholder={`${organization[name].toLocaleString("en-GB")}`}
            />
          )}
        </Field>
      ))}
      <DialogActs close={close} act="Change" busy={settle.isPending && "One moment…"} />
    </form>
  );
}
