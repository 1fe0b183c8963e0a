// What a page shows in place of its content: loading, empty, an error, or that the person may not see it. None is a dead end.
import type { ReactNode } from "react";
import { sayError } from "../api/say-error.ts";
import { Button } from "./button.tsx";

/** Nothing there: says what would be there, and how it comes. */
export function Empty({ title, children, acts }: { title: string; children?: ReactNode; acts?: ReactNode }) {
  return (
    <div className="state">
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {acts && <div className="acts">{acts}</div>}
    </div>
  );
}

/** An error as a sentence, with what can be done. */
export function Failed({ error, retry }: { error: unknown; retry?: () => void }) {
  const said = sayError(error);
  return (
    <div className="state" role="alert" data-kind={said.kind}>
      <h2>{said.title}</h2>
      <p>{said.text}</p>
      {retry && said.kind === "error" && (
        <div className="acts">
          <Button onClick={retry}>Try again</Button>
        </div>
      )}
      {said.kind === "no-permission" && <p>Somebody with another role can: ask the owner of the organization.</p>}
    </div>
  );
}

/** Rows of grey in the shape of what comes. */
export function Loading({ rows = 6 }: { rows?: number }) {
  return (
    <div role="status" aria-label="Loading" className="pad grid gap-6">
      {Array.from({ length: rows }, (_, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the rows have no identity
        <div key={row} className="ghost" style={{ width: `${88 - ((row * 17) % 40)}%` }} />
      ))}
    </div>
  );
}

type Query<T> = { data: T | undefined; error: unknown; isPending: boolean; refetch: () => unknown };

/** Loading, the error, or the content of a query. What was read before stays while it is read again. */
export function Loaded<T>({
  of: query,
  children,
  rows,
}: {
  of: Query<T>;
  children: (data: T) => ReactNode;
  rows?: number;
}) {
  if (query.data !== undefined) return children(query.data);
  if (query.isPending) return <Loading rows={rows} />;
  return <Failed error={query.error} retry={() => void query.refetch()} />;
}
