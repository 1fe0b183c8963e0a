// A question before something that cannot be undone. The button names the act; the other one is the safe way out.
import type { ReactNode } from "react";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";

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
      <div className="acts">
        <Button onClick={close}>Keep it</Button>
        <Button look="danger" busy={busy && "One moment…"} onClick={confirm}>
          {act}
        </Button>
      </div>
    </Dialog>
  );
}
