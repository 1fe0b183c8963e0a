// A place to drop files on, or to choose them by the keyboard.
import { useId, useState } from "react";

type Given = {
  /** What may be done here, or what is being done. */
  say: string;
  help: string;
  accept: string;
  busy: boolean;
  several?: boolean;
  take: (files: File[]) => void;
};

export function DropZone({ say, help, accept, busy, several = false, take }: Given) {
  const id = useId();
  const [isOver, setOver] = useState(false);
  return (
    <label
      htmlFor={id}
      className={isOver ? "drop over" : "drop"}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        if (!busy) take([...event.dataTransfer.files]);
      }}
    >
      <b className="font-semibold">{say}</b>
      <span className="dim">{help}</span>
      <input
        id={id}
        type="file"
        className="sr-only"
        accept={accept}
        multiple={several}
        disabled={busy}
        onChange={(event) => {
          take([...(event.target.files ?? [])]);
          event.target.value = "";
        }}
      />
    </label>
  );
}
