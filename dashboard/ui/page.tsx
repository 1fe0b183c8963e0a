// The head of a page: where one is, its name, its state, and what can be done with it.
import { type ReactNode, useEffect } from "react";

type Given = { title: string; crumb?: ReactNode; beside?: ReactNode; acts?: ReactNode };

/** Sets the window's title too. */
export function PageHead({ title, crumb, beside, acts }: Given) {
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
      {acts}
    </div>
  );
}
