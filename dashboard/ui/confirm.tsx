// A question before something that cannot be undone. The button names the act; the other one is the safe way out.
import type { ReactNode } from "react";
import { Dialog, DialogActs } from "./dialog.tsx";

type Given = {
  title: string;
  act: string;
  open: boolean;
  busy: boolean;
  close: () => void;
  confirm: () => void;
  children: ReactNode;
};

export function Confirm({ title, act, open, busy, close, confirm, children }: Given) {
  return (
    <Dialog title={title} open={open} close={close}>
      <p>{children}</p>
      <DialogActs close={close} leave="Keep it" act={act} look="danger" busy={busy && "One moment…"} run={confirm} />
    </Dialog>
  );
}
