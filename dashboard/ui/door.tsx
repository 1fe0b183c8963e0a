// What stands around the pages for people who are not in yet: a narrow panel, nothing to click that needs them to be.
import { type ReactNode, useEffect } from "react";
import { Brand } from "./brand.tsx";

export function Door({ title, children, below }: { title: string; children: ReactNode; below?: ReactNode }) {
  useEffect(() => {
    document.title = `${title} · Postern`;
  }, [title]);
  return (
    <main className="door">
      <div className="flex items-center justify-center font-semibold">
        <Brand />
      </div>
      <div className="panel">
        <h1>{title}</h1>
        {children}
      </div>
      {below && <p className="dim text-center text-[13px]">{below}</p>}
    </main>
  );
}
