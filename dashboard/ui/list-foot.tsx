// Below a list: how many rows there are, when that was read, and the ways to other pages.
import type { ReactNode } from "react";
import { sayCount } from "../lib/times.ts";

type Given = {
  page: { total: number; total_is_at_least?: boolean };
  one: string;
  many?: string;
  readAtMs: number;
  children?: ReactNode;
};

/** `one` names a row, `many` more when they are not it with an s. `children` are the links. */
export function ListFoot({ page, one, many, readAtMs, children }: Given) {
  return (
    <div className="foot">
      <span>
        {sayCount(page.total, { one, many, isAtLeast: page.total_is_at_least === true })} · read at{" "}
        {new Date(readAtMs).toLocaleTimeString("en-GB")}
      </span>
      <span className="grow" />
      {children}
    </div>
  );
}
