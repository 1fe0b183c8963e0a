// A question over the page: the browser's own <dialog>, which keeps the focus inside, closes on Escape and gives it back.
import { type ReactNode, useEffect, useId, useRef } from "react";
import { Button } from "./button.tsx";

type Given = { title: string; open: boolean; close: () => void; children: ReactNode };

/** Its content is made again at each opening. A question that closes inside leaves it open. */
export function Dialog({ title, open, close, children }: Given) {
  const element = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const dialog = element.current;
    if (open && dialog !== null && !dialog.open) dialog.showModal();
    if (!open && dialog?.open) dialog.close();
  }, [open]);
  return (
    <dialog
      ref={element}
      aria-labelledby={titleId}
      onClose={(event) => event.target === event.currentTarget && close()}
    >
      {open && (
        <>
          <h2 id={titleId}>{title}</h2>
          {children}
        </>
      )}
    </dialog>
  );
}

type Acts = {
  close: () => void;
  /** What the way out is called. */
  leave?: string;
  /** What the other button does; absent where there is nothing to do. */
  act?: ReactNode;
  busy?: string | false;
  look?: "primary" | "danger";
  disabled?: boolean;
  /** Absent: the button submits the form. */
  run?: () => void;
  /** Further acts: in front of the way out, and behind it. */
  before?: ReactNode;
  children?: ReactNode;
  className?: string;
};

/** The last row of a dialog: the way out, then what it is for. */
export function DialogActs({ close, leave = "Close", act, run, before, children, className = "acts", ...given }: Acts) {
  const { look = "primary", busy = false, disabled = false } = given;
  return (
    <div className={className}>
      {before}
      <Button onClick={close}>{leave}</Button>
      {children}
      {act !== undefined && (
        <Button look={look} type={run ? "button" : "submit"} busy={busy} disabled={disabled} onClick={run}>
          {act}
        </Button>
      )}
    </div>
  );
}
