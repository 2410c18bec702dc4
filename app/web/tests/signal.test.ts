import { describe, expect, it } from "vitest";
import { batch, computed, effect, memo, signal, untrack } from "../src/core/signal";

describe("signals", () => {
  it("run effects once for a batch, and only for what they read", () => {
    const [a, b, c] = [signal(1), signal(2), signal(3)];
    const seen: number[] = [];
    effect(() => {
      seen.push(a() + b() + untrack(c));
    });
    batch(() => {
      a.set(10);
      b.set(20);
    });
    c.set(30);
    a.set(10);
    expect(seen).toEqual([6, 33]);
  });

  it("work computed values out when asked, once per change", () => {
    const a = signal(2);
    let times = 0;
    const double = computed(() => {
      times += 1;
      return a() * 2;
    });
    expect(times).toBe(0);
    expect([double(), double()]).toEqual([4, 4]);
    a.set(3);
    expect(double()).toBe(6);
    expect(times).toBe(2);
  });

  it("tell a memo's readers only of values that differ", () => {
    const a = signal(1);
    const even = memo(() => a() % 2 === 0);
    const seen: boolean[] = [];
    effect(() => {
      seen.push(even());
    });
    a.set(3);
    a.set(4);
    expect(seen).toEqual([false, true]);
  });

  it("end inner effects before they would run on what is no more", () => {
    const shown = signal<{ value: number } | null>({ value: 1 });
    const seen: number[] = [];
    const there = memo(() => shown() !== null);
    effect(() => {
      if (!there()) return;
      effect(() => {
        seen.push(shown()!.value);
      });
    });
    shown.set({ value: 2 });
    shown.set(null);
    expect(seen).toEqual([1, 2]);
  });

  it("clean up before each run and at the end", () => {
    const a = signal(0);
    const log: string[] = [];
    const end = effect(() => {
      const now = a();
      log.push(`run ${now}`);
      return () => log.push(`clean ${now}`);
    });
    a.set(1);
    end();
    a.set(2);
    expect(log).toEqual(["run 0", "clean 0", "run 1", "clean 1"]);
  });
});
