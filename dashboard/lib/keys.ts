// The keys of the whole dashboard. They are silent while somebody writes in a field, and with Control, Alt or Command.

/** `g` and one of these goes to a page. */
export const PLACES: Record<string, { to: string; name: string }> = {
  s: { to: "/", name: "Start" },
  e: { to: "/emails", name: "E-mails" },
  i: { to: "/inbound", name: "Inbound" },
  m: { to: "/masked", name: "Masked" },
  d: { to: "/domains", name: "Domains" },
  t: { to: "/templates", name: "Templates" },
  w: { to: "/webhooks", name: "Webhooks" },
  u: { to: "/suppressions", name: "Suppressions" },
  k: { to: "/keys", name: "API keys" },
  o: { to: "/settings/organization", name: "Settings" },
};
const SEQUENCE_MS = 1_200;

type Hands = { go: (to: string) => void; showKeys: () => void };

/** Listens until the returned function is called. */
export function listenToKeys({ go, showKeys }: Hands): () => void {
  let begunAtMs = Number.NEGATIVE_INFINITY;
  const onKey = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isWriting(event.target)) return;
    const isSecond = event.timeStamp - begunAtMs < SEQUENCE_MS;
    begunAtMs = event.key === "g" ? event.timeStamp : Number.NEGATIVE_INFINITY;
    const place = isSecond ? PLACES[event.key] : undefined;
    if (place) return go(place.to);
    if (event.key === "?") return showKeys();
    if (event.key === "/") focusSearch(event);
  };
  addEventListener("keydown", onKey);
  return () => removeEventListener("keydown", onKey);
}

function focusSearch(event: KeyboardEvent): void {
  const field = document.querySelector<HTMLInputElement>("[data-search]");
  if (field === null) return;
  event.preventDefault();
  field.focus();
  field.select();
}

function isWriting(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return (
    target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.closest("dialog") !== null
  );
}
