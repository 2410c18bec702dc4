/** The key that a service may ask for: kept for this tab alone, sent with every request, part of no link and no file. */

import { type Read, signal } from "../core/signal";

export interface Key extends Read<string | null> {
  set(next: string | null): void;
  /** Reads without being told of changes. */
  peek(): string | null;
}

/** What the header that carries it can hold, and the service's own setting asks for; far longer ones are something else. */
const KEY = /^[!-~]{1,4096}$/;

/** The key in what was typed or pasted, with or without the header's `Bearer`; null where there is none. */
export function readKey(text: string): string | null {
  const key = text.trim().replace(/^bearer\s+/i, "");
  return KEY.test(key) ? key : null;
}

/** @param root the service's path: beside it, on the same origin, there may be others with other keys. */
export function keyFor(root: string): Key {
  const slot = `convoke-key ${root}`;
  const now = signal(remembered(slot));
  const set = (next: string | null) => {
    now.set(next);
    remember(slot, next);
  };
  return Object.assign(() => now(), { set, peek: now.peek });
}

function remembered(slot: string): string | null {
  try {
    return readKey(sessionStorage.getItem(slot) ?? "");
  } catch {
    return null;
  }
}

function remember(slot: string, key: string | null): void {
  try {
    if (key === null) sessionStorage.removeItem(slot);
    else sessionStorage.setItem(slot, key);
  } catch {
    // A browser that keeps nothing still sends the key until the page is left.
  }
}
