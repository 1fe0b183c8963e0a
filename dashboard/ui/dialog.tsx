// A question over the page: the browser's own <dialog>, which keeps the focus inside, closes on Escape and gives it back.
import { type ReactNode, useEffect, useId, useRef } from "react";

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
