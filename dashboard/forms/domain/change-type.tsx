// What a domain is for. Another type asks for other DNS records: the question before it says which.
import { type FormEvent, useState } from "react";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { fieldProblem, useAct } from "../../lib/act.ts";
import { sayTypeChange, TYPES, USES } from "../../lib/domain-types.ts";
import { useMayChange } from "../../lib/own.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog, DialogActs } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";

type Domain = Schemas["Domain"];
type Type = Domain["type"];

export function ChangeType({ domain }: { domain: Domain }) {
  const { id, type, domain: name } = domain;
  const mayChange = useMayChange();
  const [chosen, choose] = useState<Type>(type);
  const [isAsking, ask] = useState(false);
  const changing = useAct({
    run: (to: Type) => take(v1.PUT("/v1/domains/{id}", { params: { path: { id } }, body: { type: to } })),
    refresh: [["domain", id], ["domains"]],
    done: (_changed, to) => `${name} is changed to “${USES[to]}”.`,
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    ask(true);
  };
  return (
    <form onSubmit={submit} className="panel pad grid justify-items-start gap-1" noValidate>
      <Field
        label="What it is for"
        help="It decides which DNS records the domain needs."
        problem={fieldProblem(changing.error, "type")}
      >
        {(bound) => (
          <select
            {...bound}
            name="type"
            disabled={!mayChange}
            value={chosen}
            onChange={(event) => choose(TYPES.find((one) => one === event.target.value) ?? type)}
          >
            {TYPES.map((one) => (
              <option key={one} value={one}>
                {USES[one]}
              </option>
            ))}
          </select>
        )}
      </Field>
      <div className="acts">
        <Button changes type="submit" disabled={chosen === type}>
          Change
        </Button>
      </div>
      <Dialog title={`Change ${name}?`} open={isAsking} close={() => ask(false)}>
        <p className="mt-2">
          From “{USES[type]}” to “{USES[chosen]}”:
        </p>
        <ul className="mt-2 grid list-disc gap-2 pl-5 text-ink-2">
          {sayTypeChange(domain, chosen).map((sentence) => (
            <li key={sentence}>{sentence}</li>
          ))}
        </ul>
        <DialogActs
          close={() => ask(false)}
          leave="Keep it"
          act="Change it"
          busy={changing.isPending && "Changing…"}
          run={() => changing.mutate(chosen, { onSettled: () => ask(false) })}
        />
      </Dialog>
    </form>
  );
}
