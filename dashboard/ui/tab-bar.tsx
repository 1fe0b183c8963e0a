// Pages or views beside each other. Where they do not fit beside each other, the one that is shown is scrolled to.
import { type ReactNode, useEffect, useRef } from "react";

export function TabBar({ label, children }: { label: string; children: ReactNode }) {
  const nav = useRef<HTMLElement>(null);
  const shown = useRef<Element | null>(null);
  useEffect(() => {
    const active = nav.current?.querySelector('[aria-current="page"]') ?? null;
    if (nav.current === null || active === null || active === shown.current) return;
    shown.current = active;
    const [bar, tab] = [nav.current.getBoundingClientRect(), active.getBoundingClientRect()];
    nav.current.scrollLeft += tab.left - bar.left - (bar.width - tab.width) / 2;
  });
  return (
    <nav ref={nav} className="tabs" aria-label={label}>
      {children}
    </nav>
  );
}
