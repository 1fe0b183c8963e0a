// What was declined, above the buttons of a form. What is about one field stands at that field.
import { sayError } from "../api/say-error.ts";

export function Problem({ error }: { error: unknown }) {
  if (error === null || error === undefined) return null;
  const { title, text } = sayError(error);
  return (
    <p role="alert" className="problem">
      {title}. {text}
    </p>
  );
}
