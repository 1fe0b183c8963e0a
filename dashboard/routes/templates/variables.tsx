// The variables that the sources read, with a value to try each with.
import type { Schemas } from "../../api/client.ts";
import type { Typed } from "../../lib/template-values.ts";
import { Field } from "../../ui/field.tsx";

type Variable = Schemas["TemplateVariable"];
type Given = {
  template: Schemas["Template"];
  preview: Schemas["TemplatePreview"] | undefined;
  typed: Typed;
  type: (typed: Typed) => void;
};

export function VariablesPanel({ template: { variables }, preview, typed, type }: Given) {
  const known = new Set(variables.map(({ name }) => name));
  const missing = preview?.missing_variables ?? [];
  const fresh = new Set([...missing, ...Object.keys(typed)].filter((name) => !known.has(name)));
  const all: Variable[] = [...variables, ...[...fresh].map((name) => ({ name, required: true, default: null }))];
  return (
    <section className="panel pad" aria-labelledby="variables">
      <h2 id="variables">
        Variables <span className="dim num font-normal">{all.length}</span>
      </h2>
      {all.length === 0 ? (
        <p className="dim">The template reads none. Write {"{{name}}"} where a value belongs.</p>
      ) : (
        <div className="grid gap-3 sm:grid-cols-2">
          {all.map((variable) => (
            <Field key={variable.name} label={variable.name} help={sayNeed(variable, missing.includes(variable.name))}>
              {(bound) => (
                <input
                  {...bound}
                  value={typed[variable.name] ?? ""}
                  placeholder={variable.default === null ? "" : String(variable.default)}
                  autoComplete="off"
                  onChange={(event) => type({ ...typed, [variable.name]: event.target.value })}
                />
              )}
            </Field>
          ))}
        </div>
      )}
      {all.length > 0 && (
        <p className="dim mt-3 text-[12.5px]">Values for the preview and the test. A list is written as JSON: […]</p>
      )}
    </section>
  );
}

function sayNeed({ required, default: otherwise }: Variable, isMissing: boolean): string {
  if (otherwise !== null) return "has a default";
  if (!required) return "optional";
  return isMissing ? "required, empty here" : "required";
}
