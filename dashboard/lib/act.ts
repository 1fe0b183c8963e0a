// An act of a person: one call, then what changed is read again, and news is given. What the server declines is said, not lost.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Declined } from "../api/client.ts";
import { sayError } from "../api/say-error.ts";
import { toast } from "../ui/toast.tsx";

type Given<In, Out> = {
  run: (input: In) => Promise<Out>;
  /** Names of what is read again (api/queries.ts). */
  refresh: readonly (readonly unknown[])[];
  done?: (out: Out, input: In) => string | undefined;
  /** What is declined stands in the caller's own form. */
  isErrorShown?: boolean;
};

/** `done` gives the news, or nothing. An error that names a field is for the form (fieldProblem); any other becomes news. */
export function useAct<In, Out>({ run, refresh, done, isErrorShown = false }: Given<In, Out>) {
  const queries = useQueryClient();
  return useMutation<Out, unknown, In>({
    mutationFn: run,
    onSuccess: async (out, input) => {
      const news = done?.(out, input);
      if (news !== undefined) toast(news);
      await Promise.all(refresh.map((queryKey) => queries.invalidateQueries({ queryKey })));
    },
    onError: (error) => {
      if (isErrorShown || fieldOf(error) !== undefined) return;
      const { title, text } = sayError(error);
      toast(`${title}. ${text}`, { bad: true });
    },
  });
}

/** What is wrong with this field, if the error is about it. */
export function fieldProblem(error: unknown, field: string): string | undefined {
  return fieldOf(error) === field ? sayError(error).text : undefined;
}

function fieldOf(error: unknown): string | undefined {
  return error instanceof Declined ? error.body.field : undefined;
}
