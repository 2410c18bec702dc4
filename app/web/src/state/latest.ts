/** One job at a time; of those that arrive meanwhile only the newest is kept. */

export type Job = (signal: AbortSignal) => Promise<void>;

/** A job older than this gives way at once; a younger one may finish and be seen. */
const PATIENCE_MS = 250;

export class Latest {
  private next: Job | null = null;
  private control: AbortController | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private since = 0;

  submit(job: Job): void {
    this.next = job;
    if (this.control === null) void this.work();
    else this.hurry();
  }

  get busy(): boolean {
    return this.control !== null;
  }

  /** The job has done what matters: the next one need not wait for its end. */
  spare(): void {
    this.since = -Infinity;
    if (this.next) this.hurry();
  }

  private hurry(): void {
    const left = this.since + PATIENCE_MS - performance.now();
    clearTimeout(this.timer);
    if (left <= 0) this.control?.abort();
    else this.timer = setTimeout(() => this.control?.abort(), left);
  }

  private async work(): Promise<void> {
    while (this.next !== null) {
      const job = this.next;
      this.next = null;
      this.control = new AbortController();
      this.since = performance.now();
      try {
        await job(this.control.signal);
      } finally {
        clearTimeout(this.timer);
        this.control = null;
      }
    }
  }
}
