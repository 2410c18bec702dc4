/** Light or dark: the system's wish, or the user's own, which stays in this browser. */

import { computed, effect, signal } from "../core/signal";
import type { Theme } from "../grid/draw";

export type Wish = "system" | "light" | "dark";

const KEY = "convoke-theme";
const THEMES: Record<"light" | "dark", Theme> = {
  light: { name: "light", surface: "#fdfdfc", ink: "#15181c", muted: "#777d85", faint: "#cfd1cf", dim: "#454a52" },
  dark: { name: "dark", surface: "#131518", ink: "#f3f4f2", muted: "#878d96", faint: "#3d4248", dim: "#c8cdd3" },
};

function remembered(): Wish {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : "system";
  } catch {
    return "system";
  }
}

const query = matchMedia("(prefers-color-scheme: dark)");
const system = signal(query.matches);
query.addEventListener("change", () => system.set(query.matches));

export const wish = signal<Wish>(remembered());
export const theme = computed<Theme>(() => {
  const dark = wish() === "system" ? system() : wish() === "dark";
  return THEMES[dark ? "dark" : "light"];
});

export function followTheme(): void {
  effect(() => {
    document.documentElement.dataset.theme = theme().name;
  });
}

export function setWish(next: Wish): void {
  wish.set(next);
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // A browser that keeps nothing still shows the theme for this visit.
  }
}
