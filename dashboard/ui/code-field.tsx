// The code of an authenticator app, or a recovery code in its place.
import { useState } from "react";
import { Button } from "./button.tsx";
import { Field } from "./field.tsx";

/** An input called `code`. */
export function CodeField({ problem, hasRecovery = true }: { problem?: string; hasRecovery?: boolean }) {
  const [isRecovery, setRecovery] = useState(false);
  return (
    <div className="grid gap-1 justify-items-start">
      <Field
        label={isRecovery ? "Recovery code" : "Code of your authenticator app"}
        help={isRecovery ? "One of the ten you kept. Each works once." : undefined}
        problem={problem}
      >
        {(bound) => (
          <input
            {...bound}
            key={String(isRecovery)}
            name="code"
            // biome-ignore lint/a11y/noAutofocus: it is asked for in answer to what was just sent
            autoFocus
            autoComplete={isRecovery ? "off" : "one-time-code"}
            inputMode={isRecovery ? "text" : "numeric"}
            spellCheck={false}
            autoCapitalize="none"
          />
        )}
      </Field>
      {hasRecovery && (
        <Button look="quiet" className="link" onClick={() => setRecovery(!isRecovery)}>
          {isRecovery ? "Use the authenticator app" : "Use a recovery code"}
        </Button>
      )}
    </div>
  );
}
