// Short news of what was done, read out by screen readers and gone after a while. What must be kept stands on the page.
import { useSyncExternalStore } from "react";

type Toast = { id: number; text: string; bad: boolean };
const SHOWN_MS = 6_000;
let toasts: readonly Toast[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

function set(next: readonly Toast[]): void {
  toasts = next;
  for (const tell of listeners) tell();
}

/** `bad` for what did not work. */
export function toast(text: string, { bad = false } = {}): void {
  lastId += 1;
  const id = lastId;
  set([...toasts, { id, text, bad }]);
  setTimeout(() => set(toasts.filter((one) => one.id !== id)), SHOWN_MS);
}

function subscribe(changed: () => void): () => void {
  listeners.add(changed);
  return () => listeners.delete(changed);
}

/** Once, in the shell. */
export function Toasts() {
  const shown = useSyncExternalStore(subscribe, () => toasts);
  return (
    <div className="toasts" role="status" aria-live="polite">
      {shown.map(({ id, text, bad }) => (
        <div key={id} className={bad ? "toast bad" : "toast"}>
          {text}
        </div>
      ))}
    </div>
  );
}
