// Buttons: one primary a page at most. A busy button says what it does and cannot be pressed twice.
import type { ComponentProps } from "react";
import { useMayChange } from "../lib/own.ts";

type Look = "plain" | "primary" | "quiet" | "danger";
type Given = ComponentProps<"button"> & { look?: Look; busy?: string | false; changes?: boolean };

const CLASSES: Record<Look, string> = {
  plain: "btn",
  primary: "btn primary",
  quiet: "btn quiet",
  danger: "btn danger",
};

/** `busy` is the word shown while the action runs, such as “Checking…”. What `changes` something is not there for viewers. */
export function Button({ look = "plain", busy = false, changes = false, className = "", ...given }: Given) {
  const { children, disabled, ...rest } = given;
  const mayChange = useMayChange();
  if (changes && !mayChange)
    return rest.type === "submit" ? <span className="dim">Viewers cannot change this.</span> : null;
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
