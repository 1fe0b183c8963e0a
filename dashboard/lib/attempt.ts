// One call with a secret in it: a password, a token. Unlike an act (act.ts) nothing of it is kept in a cache.
import { useState } from "react";

/** `attempt` never throws: what was declined is in `error` until the next one. */
export function useAttempt<In>(run: (input: In) => Promise<void>) {
  const [state, set] = useState<{ isBusy: boolean; error: unknown }>({ isBusy: false, error: null });
  const attempt = async (input: In): Promise<void> => {
    set({ isBusy: true, error: null });
    try {
      await run(input);
      set({ isBusy: false, error: null });
    } catch (error) {
      set({ isBusy: false, error });
    }
  };
  return { ...state, attempt: (input: In) => void attempt(input) };
}
