// A password that is set: typed once, shown if wanted.
import { useState } from "react";
import { Button } from "./button.tsx";
import { Field } from "./field.tsx";

/** An input called `password`. `email`: whose it is, for password managers. */
export function NewPassword({ problem, email }: { problem?: string; email?: string }) {
  const [isShown, show] = useState(false);
  return (
    <>
      {email !== undefined && (
        <input type="text" name="username" autoComplete="username" value={email} readOnly hidden />
      )}
      <div className="beside">
        <Field label="New password" help="Ten characters or more; a few words are good." problem={problem}>
          {(bound) => (
            <input {...bound} name="password" type={isShown ? "text" : "password"} autoComplete="new-password" />
          )}
        </Field>
        <Button look="quiet" aria-pressed={isShown} onClick={() => show(!isShown)}>
          {isShown ? "Hide" : "Show"}
        </Button>
      </div>
    </>
  );
}
