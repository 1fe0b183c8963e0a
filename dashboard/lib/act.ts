// An act of a person: one call, then what changed is read again, and news is given. What the server declines is said, not lost.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { Declined } from "../api/client.ts";
import { sayError } from "../api/say-error.ts";
import { toast } from "../ui/toast.tsx";
import { sayOfField } from "./fields.ts";

type Given<In, Out> = {
  run: (input: In) => Promise<Out>;
  /** Names of what is read again (api/queries.ts). */
  refresh: readonly (readonly unknown[])[];
  done?: (out: Out, input: In) => string | undefined;
  /** What is declined stands in the caller's own form. */
  isErrorShown?: boolean;
};

/**
 * `done` gives the news, or nothing. An error that a field of the form shows (fieldProblem) stands there; any other becomes news.
 * The same act is not begun a second time while it runs: a double click comes before the button shows that it is busy.
 */
export function useAct<In, Out>({ run, refresh, done, isErrorShown = false }: Given<In, Out>) {
  const queries = useQueryClient();
  const running = useRef(new Set<string>());
  const act = useMutation<Out, unknown, In>({
    mutationFn: run,
    onSettled: (_out, _error, input) => void running.current.delete(nameOf(input)),
    onSuccess: async (out, input) => {
      const news = done?.(out, input);
      if (news !== undefined) toast(news);
      await Promise.all(refresh.map((queryKey) => queries.invalidateQueries({ queryKey })));
    },
    onError: (error) => {
      if (!isErrorShown && fieldOf(error) === undefined) tell(error);
    },
  });
  const { error } = act;
  // After the form was drawn: it may have no such field, and nothing that was declined is lost.
  useEffect(() => {
    if (!isErrorShown && fieldOf(error) !== undefined && !shown.has(error as Declined)) tell(error);
  }, [error, isErrorShown]);
  const mutate: typeof act.mutate = (...given) => {
    const name = nameOf(given[0] as In);
    if (running.current.has(name)) return;
    running.current.add(name);
    act.mutate(...given);
  };
  return { ...act, mutate };
}

/** Two inputs with the same name are the same act. */
function nameOf(input: unknown): string {
  return JSON.stringify([input], (_key, value) => (value instanceof File ? [value.name, value.size] : value));
}

/** Errors that stand at a field. */
const shown = new WeakSet<Declined>();

function tell(error: unknown): void {
  const { title, text } = sayError(error);
  toast(`${title}. ${text}`, { bad: true });
}

/** What is wrong with this field or an entry of its list, if the error is about it. `entries`: what was sent, to name the wrong one. */
export function fieldProblem(error: unknown, field: string, entries: readonly string[] = []): string | undefined {
  const at = fieldOf(error);
  if (at === undefined || (at !== field && !at.startsWith(`${field}[`))) return undefined;
  shown.add(error as Declined);
  return sayOfField(sayError(error).text, entries[Number(/\[(\d+)\]$/.exec(at)?.[1])]);
}

function fieldOf(error: unknown): string | undefined {
  return error instanceof Declined ? error.body.field : undefined;
}
