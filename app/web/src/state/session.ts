/** The layer on show: what was asked for, what the service made of it, and what it refused. */

import { AbortedError, type Client, ConvokeError, NetworkError, type Plan, ProblemError } from "../client";
import { batch, signal } from "../core/signal";
import { Latest } from "./latest";
import { askPlan, planRequest, serve, type Served } from "./served";
import type { Spec } from "./spec";

export interface Refusal {
  /** The control that asked. */
  readonly field: string;
  readonly wanted: Spec;
  readonly reason: string;
  readonly expected: string | null;
}

export interface Trouble {
  readonly kind: "offline" | "busy" | "problem";
  readonly message: string;
  /** When the page asks again by itself, or null where that would not help. */
  readonly retryAt: number | null;
}

const REMEMBERED = 64;

export class Session {
  /** What the controls show: the newest wish, until it is served or refused. */
  readonly draft;
  readonly served = signal<Served | null>(null);
  readonly refusal = signal<Refusal | null>(null);
  readonly trouble = signal<Trouble | null>(null);
  /** The picture is of an older wish than the controls. */
  readonly stale = signal(false);
  private readonly latest = new Latest();
  private readonly plans = new Map<string, Plan>();
  private retries = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private lastField = "";
  private again: () => void = () => this.retry();

  constructor(readonly client: Client, first: Spec) {
    this.draft = signal<Spec>(first);
  }

  /** Asks for `spec`. Older wishes that were not served yet are dropped. */
  want(spec: Spec, field = ""): void {
    clearTimeout(this.timer);
    this.lastField = field;
    batch(() => {
      this.draft.set(spec);
      this.refusal.set(null);
      this.stale.set(true);
    });
    this.latest.submit((abort) => this.attempt(spec, field, abort));
  }

  change(change: (spec: Spec) => Spec, field = ""): void {
    this.want(change(this.draft.peek()), field);
  }

  retry(): void {
    this.want(this.draft.peek(), this.lastField);
  }

  /** What failed last, once more and at once. */
  tryNow(): void {
    clearTimeout(this.timer);
    this.again();
  }

  /** The service has answered. */
  recovered(): void {
    this.retries = 0;
    this.trouble.set(null);
  }

  /** Whether the service would plan this layer; false where it refuses. */
  async accepts(spec: Spec, abort: AbortSignal): Promise<boolean> {
    try {
      await this.plan(spec, abort);
      return true;
    } catch (error) {
      if (error instanceof ProblemError && !error.temporary) return false;
      throw error;
    }
  }

  private async plan(spec: Spec, abort: AbortSignal): Promise<Plan> {
    const key = JSON.stringify([spec.op, planRequest(spec)]);
    const known = this.plans.get(key);
    if (known) return known;
    const plan = await askPlan(this.client, spec, abort);
    this.plans.set(key, plan);
    if (this.plans.size > REMEMBERED) this.plans.delete(this.plans.keys().next().value!);
    return plan;
  }

  private async attempt(spec: Spec, field: string, abort: AbortSignal): Promise<void> {
    try {
      const served = await serve(this.client, spec, await this.plan(spec, abort), abort);
      batch(() => {
        this.served.set(served);
        this.recovered();
        this.stale.set(this.draft.peek() !== spec);
      });
    } catch (error) {
      if (error instanceof AbortedError) return;
      if (!(error instanceof ConvokeError)) throw error;
      this.failed(spec, field, error);
    }
  }

  private failed(spec: Spec, field: string, error: ConvokeError): void {
    if (error instanceof ProblemError && [413, 422].includes(error.status)) {
      this.refused(spec, field, error);
      return;
    }
    this.report(error, () => this.retry());
  }

  /** Says what is wrong and asks again by `again`, where time may help. */
  report(error: ConvokeError, again: () => void): void {
    const offline = error instanceof NetworkError;
    const temporary = offline || (error instanceof ProblemError && error.temporary);
    const asked = error instanceof ProblemError ? error.retryAfter : null;
    const wait = Math.min(15, asked ?? 2 ** Math.min(this.retries, 4) * 0.5);
    this.retries += 1;
    this.trouble.set({
      kind: offline ? "offline" : temporary ? "busy" : "problem",
      message: error.message,
      retryAt: temporary ? Date.now() + wait * 1000 : null,
    });
    this.again = again;
    clearTimeout(this.timer);
    if (temporary) this.timer = setTimeout(again, wait * 1000);
  }

  private refused(spec: Spec, field: string, error: ProblemError): void {
    const issue = error.issues[0];
    batch(() => {
      this.trouble.set(null);
      this.refusal.set({
        field,
        wanted: spec,
        reason: issue ? issue.msg : error.message,
        expected: issue?.expected === undefined || issue.expected === null ? null : String(issue.expected),
      });
      // A newer wish may be waiting: then the controls are its, not ours to put back.
      const kept = this.served.peek();
      if (this.draft.peek() === spec && kept) {
        this.draft.set(kept.spec);
        this.stale.set(false);
      }
    });
  }
}
