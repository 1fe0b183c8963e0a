// For which of their organizations a person acts. A tab keeps its own; a new tab begins with the one chosen last.
const NAME = "postern-organization";

/** The chosen one if the person belongs to it, else the first; null: they belong to none. */
export function actingFor<T extends { id: string }>(organizations: readonly T[]): T | null {
  const chosen = read();
  return organizations.find(({ id }) => id === chosen) ?? organizations[0] ?? null;
}

export function actFor(id: string): void {
  for (const kept of [sessionStorage, localStorage]) kept.setItem(NAME, id);
}

/** The headers with which a person's requests of /v1 say it. */
export function actingHeaders(): Record<string, string> {
  const chosen = read();
  return chosen === null ? {} : { "x-postern-organization": chosen, "x-postern-environment": "live" };
}

function read(): string | null {
  return sessionStorage.getItem(NAME) ?? localStorage.getItem(NAME);
}
