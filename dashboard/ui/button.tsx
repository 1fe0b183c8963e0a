// Buttons: one primary a page at most. A busy button says what it does and cannot be pressed twice.
import type { ComponentProps } from "react";

type Look = "plain" | "primary" | "quiet" | "danger";
type Given = ComponentProps<"button"> & { look?: Look; busy?: string | false };

const CLASSES: Record<Look, string> = {
  plain: "btn",
  primary: "btn primary",
  quiet: "btn quiet",
  danger: "btn danger",
};

/** `busy` is the word shown while the action runs, such as “Checking…”. */
export function Button({ look = "plain", busy = false, className = "", children, disabled, ...rest }: Given) {
  return (
    <button
      type="button"
      className={`${CLASSES[look]} ${className}`}
      disabled={disabled === true || busy !== false}
      {...rest}
    >
      {busy === false ? children : busy}
    </button>
  );
}
