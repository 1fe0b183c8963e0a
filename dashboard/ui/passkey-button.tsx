// “With a passkey”, where the browser can.
import { canUsePasskeys } from "../lib/passkeys.ts";
import { Button } from "./button.tsx";

type Given = { label: string; isBusy: boolean; use: () => void };

export function PasskeyButton({ label, isBusy, use }: Given) {
  if (!canUsePasskeys()) return null;
  return (
    <Button busy={isBusy && "Waiting for the browser…"} onClick={use}>
      {label}
    </Button>
  );
}
