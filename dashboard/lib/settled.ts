// A value once it has stood still: what is written is not asked about at every key.
import { useEffect, useState } from "react";

const STILL_MS = 350;

/** Compared by content. */
export function useSettled<T>(value: T): T {
  const [settled, settle] = useState(value);
  const content = JSON.stringify(value);
  useEffect(() => {
    const timer = setTimeout(() => settle(JSON.parse(content)), STILL_MS);
    return () => clearTimeout(timer);
  }, [content]);
  return settled;
}
