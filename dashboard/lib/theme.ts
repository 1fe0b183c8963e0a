// Light or dark: what the person chose here, else what the system says.
import { useSyncExternalStore } from "react";

export type Theme = "light" | "dark" | "system";
const KEY = "postern-theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

function chosenTheme(): Theme {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "system";
}

/** Puts it on the page; called before anything is drawn, and when it changes. */
export function applyTheme(): void {
  const theme = chosenTheme();
  document.documentElement.dataset.theme = theme === "system" ? (system.matches ? "dark" : "light") : theme;
}

export function chooseTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme);
  applyTheme();
  for (const tell of listeners) tell();
}

/** The choice, not what it comes to. */
export function useTheme(): Theme {
  return useSyncExternalStore((changed) => {
    listeners.add(changed);
    return () => listeners.delete(changed);
  }, chosenTheme);
}

system.addEventListener("change", applyTheme);
