// A source that is written in the page. It is a plain field until the editor has come, and stays one when it does not.
import { useEffect, useRef, useState } from "react";
import type { Editor } from "./code-mirror.ts";

type Given = {
  label: string;
  text: string;
  change: (text: string) => void;
  isHtml?: boolean;
  /** The line of a mistake, from 1. */
  mistake?: number | null;
};

export function CodeArea({ label, text, change, isHtml = false, mistake = null }: Given) {
  const place = useRef<HTMLDivElement>(null);
  const latest = useRef({ text, change });
  latest.current = { text, change };
  const [editor, set] = useState<Editor | null>(null);
  useEffect(() => {
    let made: Editor | null = null;
    let isGone = false;
    const make = async () => {
      const { createEditor } = await import("./code-mirror.ts");
      if (isGone || place.current === null) return;
      const changed = (next: string) => latest.current.change(next);
      made = createEditor({ parent: place.current, text: latest.current.text, isHtml, label, changed });
      set(made);
    };
    make().catch(() => undefined);
    return () => {
      isGone = true;
      made?.destroy();
      set(null);
    };
  }, [isHtml, label]);
  useEffect(() => editor?.setText(text), [editor, text]);
  useEffect(() => editor?.showMistake(mistake), [editor, mistake]);
  return (
    <div className="code" ref={place}>
      {editor === null && (
        <textarea aria-label={label} value={text} spellCheck={false} onChange={(event) => change(event.target.value)} />
      )}
    </div>
  );
}
