// The head of a page: where one is, its name, its state, and what can be done with it.
import { type ReactNode, useEffect } from "react";
import { useMayChange } from "../lib/own.ts";

type Given = { title: string; crumb?: ReactNode; beside?: ReactNode; acts?: ReactNode; always?: ReactNode };

/** Sets the window's title too. `acts` change something, so viewers have none of them; `always` are for everybody. */
export function PageHead({ title, crumb, beside, acts, always }: Given) {
  const mayChange = useMayChange();
  useEffect(() => {
    document.title = `${title} · Postern`;
  }, [title]);
  return (
    <div className="top">
      {crumb && (
        <>
          {crumb}
          <span className="dim" aria-hidden="true">
            /
          </span>
        </>
      )}
      <h1>{title}</h1>
      {beside}
      <span className="grow" />
      {always}
      {mayChange && acts}
    </div>
  );
}
