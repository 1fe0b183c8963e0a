// Copying: a button that says that it is done.
import { useEffect, useState } from "react";
import { Button } from "./button.tsx";

const SAID_MS = 2_000;

/** `what` names it for those who do not see what stands beside the button. */
export function CopyButton({ text, what, label = "Copy" }: { text: string; what: string; label?: string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), SAID_MS);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = () => void navigator.clipboard.writeText(text).then(() => setCopied(true));
  return (
    <Button look="quiet" onClick={copy} aria-label={copied ? `Copied ${what}` : `Copy ${what}`}>
      {copied ? "Copied" : label}
    </Button>
  );
}
