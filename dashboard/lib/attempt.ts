// One call with a secret in it: a password, a token. Unlike an act (act.ts) nothing of it is kept in a cache.
import { useRef, useState } from "react";

/** `attempt` never throws: what was declined is in `error` until the next one. While one runs, another is not begun. */
export function useAttempt<In>(run: (input: In) => Promise<void>) {
  const [state, set] = useState<{ isBusy: boolean; error: unknown }>({ isBusy: false, error: null });
  const isRunning = useRef(false);
  const attempt = async (input: In): Promise<void> => {
    if (isRunning.current) return;
    isRunning.current = true;
    set({ isBusy: true, error: null });
    try {
      await run(input);
      set({ isBusy: false, error: null });
    } catch (error) {
      set({ isBusy: false, error });
    } finally {
      isRunning.current = false;
    }
  };
  return { ...state, attempt: (input: In) => void attempt(input) };
}
