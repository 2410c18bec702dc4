/** Signals: values that know who read them. Effects run again when what they read has changed. */

type Observer = { notify(): void; sources: Set<Set<Observer>> };
type Cleanup = () => void;

let observer: Observer | null = null;
let owner: Cleanup[] | null = null;
let depth = 0;
let births = 0;
const waiting = new Set<Effect>();

export interface Read<T> {
  (): T;
}

export interface Signal<T> extends Read<T> {
  set(value: T): void;
  update(change: (value: T) => T): void;
  /** Reads without being told of changes. */
  peek(): T;
}

function track(readers: Set<Observer>): void {
  if (observer === null) return;
  readers.add(observer);
  observer.sources.add(readers);
}

function leave(who: Observer): void {
  for (const readers of who.sources) readers.delete(who);
  who.sources.clear();
}

function watch<T>(who: Observer | null, run: () => T): T {
  const before = observer;
  observer = who;
  try {
    return run();
  } finally {
    observer = before;
  }
}

export function signal<T>(value: T): Signal<T> {
  const readers = new Set<Observer>();
  const read = () => {
    track(readers);
    return value;
  };
  const set = (next: T) => {
    if (Object.is(next, value)) return;
    value = next;
    batch(() => {
      for (const reader of [...readers]) reader.notify();
    });
  };
  return Object.assign(read, {
    set,
    update: (change: (value: T) => T) => set(change(value)),
    peek: () => value,
  });
}

/** A value worked out from others, at most once per change, when somebody asks. */
export function computed<T>(work: () => T): Read<T> {
  const readers = new Set<Observer>();
  let fresh = false;
  let value: T;
  const self: Observer = {
    sources: new Set(),
    notify: () => {
      if (!fresh) return;
      fresh = false;
      // Nothing more to hear until somebody asks again; and if nobody does, the sources let go of it.
      leave(self);
      for (const reader of [...readers]) reader.notify();
    },
  };
  return () => {
    track(readers);
    if (!fresh) {
      value = watch(self, work);
      fresh = true;
    }
    return value;
  };
}

/** Like `computed`, but tells its readers only of values that differ: for what decides which controls there are. */
export function memo<T>(work: () => T): Read<T> {
  const value = signal(untrack(work));
  effect(() => value.set(work()));
  return value;
}

class Effect implements Observer {
  sources = new Set<Set<Observer>>();
  private inner: Cleanup[] = [];
  private ended = false;
  readonly born = (births += 1);

  constructor(private readonly work: () => void | Cleanup) {}

  notify(): void {
    waiting.add(this);
  }

  run(): void {
    if (this.ended) return;
    this.clear();
    const before = owner;
    owner = this.inner;
    try {
      const cleanup = watch(this, this.work);
      if (cleanup) this.inner.push(cleanup);
    } finally {
      owner = before;
    }
  }

  end(): void {
    this.ended = true;
    waiting.delete(this);
    this.clear();
  }

  private clear(): void {
    leave(this);
    for (const cleanup of this.inner.splice(0)) cleanup();
  }
}

/** Runs `work` now and after every change of what it read; ends with the effect that it was made in. */
export function effect(work: () => void | Cleanup): Cleanup {
  const made = new Effect(work);
  const end = () => made.end();
  owner?.push(end);
  made.run();
  return end;
}

/** Registers what to do when the surrounding effect ends or runs again. */
export function onCleanup(cleanup: Cleanup): void {
  owner?.push(cleanup);
}

/** Several changes, then one round of effects. */
export function batch(work: () => void): void {
  depth += 1;
  try {
    work();
  } finally {
    depth -= 1;
    if (depth === 0) flush();
  }
}

function flush(): void {
  depth += 1;
  try {
    for (let next = eldest(); next; next = eldest()) {
      waiting.delete(next);
      next.run();
    }
  } finally {
    depth -= 1;
  }
}

/** Effects run eldest first, so that one that is about to end another does so before it runs in vain. */
function eldest(): Effect | null {
  let found: Effect | null = null;
  for (const one of waiting) if (found === null || one.born < found.born) found = one;
  return found;
}

export function untrack<T>(work: () => T): T {
  return watch(null, work);
}
