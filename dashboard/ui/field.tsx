// A field of a form: its label, what is wrong with it, and a word of help below.
import { type ReactNode, useId } from "react";

type Bound = { id: string; "aria-invalid": boolean; "aria-describedby": string | undefined; className: string };
type Given = { label: string; problem?: string; help?: string; children: (bound: Bound) => ReactNode };

/** `children` gets what the input must carry. */
export function Field({ label, problem, help, children }: Given) {
  const id = useId();
  const said = problem ?? help;
  const describedBy = said === undefined ? undefined : `${id}-said`;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, "aria-invalid": problem !== undefined, "aria-describedby": describedBy, className: "input" })}
      {said !== undefined && (
        <span id={describedBy} className={problem === undefined ? "dim" : "problem"}>
          {said}
        </span>
      )}
    </div>
  );
}
