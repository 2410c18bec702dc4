/** The layer on show: what was asked for, what the service made of it, and what it refused. */

import { AbortedError, type Client, ConvokeError, ForeignError, GatewayError, NetworkError, type Plan, ProblemError } from "../client";
import { batch, memo, signal } from "../core/signal";
import { faults } from "./fault";
import { Latest } from "./latest";
import { guessOutput } from "./guess";
import { holdPlaces } from "./places";
import { askPlan, plannedOutput, planRequest, serve, type Served } from "./served";
import type { Spec } from "./spec";

export interface Refusal {
  /** The control that asked. */
  readonly field: string;
  readonly wanted: Spec;
  /** Each field that it is about, and what the service has against it. */
  readonly why: string;
}

export interface Trouble {
  /** `key`: the service wants one, or another one. */
  readonly kind: "offline" | "gateway" | "foreign" | "busy" | "key" | "problem";
  readonly message: string;
  /** When the page asks again by itself, or null where that would not help. */
  readonly retryAt: number | null;
}

/** Of these time may heal. */
const PASSING: ReadonlySet<Trouble["kind"]> = new Set(["offline", "gateway", "foreign", "busy"] as const);
/** What a link or file asks as: for a whole layer, with numbers of its own. */
const LINK = "link";
const REMEMBERED = 64;
/** What a timer can count, and a user may have patience for. */
const LONGEST_WAIT_S = 600;

function kindOf(error: ConvokeError): Trouble["kind"] {
  if (error instanceof GatewayError) return "gateway";
  if (error instanceof NetworkError) return "offline";
  if (error instanceof ForeignError) return "foreign";
  if (!(error instanceof ProblemError)) return "problem";
  return error.temporary ? "busy" : error.locked ? "key" : "problem";
}

/** Whether two are one layer, whatever its tensors hold. */
function sameLayer(one: Spec, other: Spec): boolean {
  const plain = ({ fills: _, ...rest }: Spec) => JSON.stringify(rest);
  return plain(one) === plain(other);
}

/** Whether their tensors hold the same; those that are made anew count as others. */
function sameNumbers(one: Spec, other: Spec): boolean {
  const names = Object.keys(one.fills) as (keyof Spec["fills"])[];
  return names.every((name) => one.fills[name] === other.fills[name]);
}

const keyOf = (spec: Spec) => JSON.stringify([spec.op, planRequest(spec)]);

export class Session {
  /** What the controls show: the newest wish, until it is served or refused. */
  readonly draft;
  readonly served = signal<Served | null>(null);
  /** What the layer on show costs; it comes a moment after its picture. */
  readonly plan = signal<Plan | null>(null);
  readonly refusal = signal<Refusal | null>(null);
  readonly trouble = signal<Trouble | null>(null);
  /** What is the matter is the key. */
  readonly locked = memo(() => this.trouble()?.kind === "key");
  /** The picture is of an older wish than the controls. */
  readonly stale = signal(false);
  private readonly latest = new Latest();
  private readonly plans = new Map<string, Plan>();
  private retries = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private lastField = "";
  /** What failed and waits to be asked again, by who asked: one of them must not take another's turn. */
  private readonly waiting = new Map<unknown, () => void>();

  constructor(readonly client: Client, first: Spec) {
    this.draft = signal<Spec>(first);
  }

  /** Somebody wants something else. */
  onWish: () => void = () => undefined;

  /** Asks for `spec`. Older wishes that were not served yet are dropped. */
  want(spec: Spec, field = ""): void {
    this.onWish();
    const before = this.draft.peek();
    // Numbers that come while another layer is under way have not asked for that.
    const asked = this.under(before) && sameLayer(before, spec) ? this.lastField : field;
    this.ask(spec, asked);
  }

  /** Whether it is another layer than the one on show. */
  private under(spec: Spec): boolean {
    const shown = this.served.peek()?.spec;
    return shown !== undefined && !sameLayer(shown, spec);
  }

  private ask(spec: Spec, field: string): void {
    this.forget(this);
    this.lastField = field;
    batch(() => {
      this.draft.set(spec);
      this.refusal.set(null);
      this.stale.set(true);
    });
    this.latest.submit((abort) => this.attempt(spec, field, abort));
  }

  change(change: (spec: Spec) => Spec, field = ""): void {
    const draft = this.draft.peek();
    const before = holdPlaces(draft, this.outputOf(draft));
    const next = change(before);
    // What there is needs no asking, but settles what was refused in its place.
    if (sameLayer(before, next) && sameNumbers(before, next)) {
      this.onWish();
      this.refusal.set(null);
    } else this.want(next, field);
  }

  retry(): void {
    this.ask(this.draft.peek(), this.lastField);
  }

  /** All that failed and waits, once more and at once; the layer on show, where nothing waits. */
  tryNow(): void {
    clearTimeout(this.timer);
    const all = this.waiting.size > 0 ? [...this.waiting.values()] : [() => this.retry()];
    this.waiting.clear();
    for (const again of all) again();
  }

  /** Whoever asked has asked anew. */
  forget(who: unknown): void {
    this.waiting.delete(who);
  }

  /** The service has answered. */
  recovered(): void {
    this.retries = 0;
    this.trouble.set(null);
  }

  /** Another operation, dimension or whole layer is asked for than is on show: the cells on show have no places in it. */
  get replaced(): boolean {
    return this.replaces(this.draft.peek(), this.lastField);
  }

  private replaces(wanted: Spec, field: string): boolean {
    const shown = this.served.peek()?.spec;
    if (!shown) return false;
    return shown.op !== wanted.op || shown.dims !== wanted.dims || (field === LINK && this.under(wanted));
  }

  /** The shape of a layer's output, in the page's order: as it was answered, planned or guessed; null where it was not. */
  outputOf(spec: Spec): readonly number[] | null {
    const served = this.served();
    if (served && keyOf(served.spec) === keyOf(spec)) return served.shapes.y;
    const known = this.known(spec);
    return known ? plannedOutput(spec, known) : guessOutput(spec);
  }

  /** Whether the service would plan this layer; false where it refuses. */
  async accepts(spec: Spec, abort: AbortSignal): Promise<boolean> {
    try {
      await this.planned(spec, abort);
      return true;
    } catch (error) {
      if (error instanceof ProblemError && !error.temporary && !error.locked) return false;
      throw error;
    }
  }

  private known(spec: Spec): Plan | undefined {
    return this.plans.get(keyOf(spec));
  }

  private async planned(spec: Spec, abort: AbortSignal): Promise<Plan> {
    const known = this.known(spec);
    if (known) return known;
    const plan = await askPlan(this.client, spec, abort);
    this.plans.set(keyOf(spec), plan);
    if (this.plans.size > REMEMBERED) this.plans.delete(this.plans.keys().next().value!);
    return plan;
  }

  /** One request where the output's shape is known or guessed right; the plan has the last word where it was not. */
  private async serve(spec: Spec, abort: AbortSignal): Promise<Served> {
    const guess = this.known(spec) ? null : guessOutput(spec);
    if (guess) {
      try {
        return await serve(this.client, spec, guess, abort);
      } catch (error) {
        if (!(error instanceof ProblemError) || error.status !== 422) throw error;
      }
    }
    return serve(this.client, spec, plannedOutput(spec, await this.planned(spec, abort)), abort);
  }

  private async attempt(spec: Spec, field: string, abort: AbortSignal): Promise<void> {
    try {
      const served = await this.serve(spec, abort);
      batch(() => {
        this.served.set(served);
        this.plan.set(this.known(spec) ?? null);
        this.recovered();
        this.stale.set(this.draft.peek() !== spec);
      });
      this.latest.spare();
      this.plan.set(await this.planned(spec, abort));
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
    this.report(error, () => this.retry(), this);
  }

  /** Says what is wrong and asks again by `again`, where time may help. */
  report(error: ConvokeError, again: () => void, who: unknown): void {
    const kind = kindOf(error);
    const temporary = PASSING.has(kind);
    const asked = error instanceof ProblemError || error instanceof GatewayError ? error.retryAfter : null;
    // As late as the service asks for; where it does not say, later each time.
    const wait = asked === null ? 2 ** Math.min(this.retries, 4) * 0.5 : Math.min(LONGEST_WAIT_S, Math.max(1, asked));
    this.retries += 1;
    this.trouble.set({
      kind,
      message: error.message,
      retryAt: temporary ? Date.now() + wait * 1000 : null,
    });
    this.waiting.set(who, again);
    clearTimeout(this.timer);
    if (temporary) this.timer = setTimeout(() => this.waiting.size > 0 && this.tryNow(), wait * 1000);
  }

  private refused(spec: Spec, field: string, error: ProblemError): void {
    batch(() => {
      this.trouble.set(null);
      this.refusal.set({
        field,
        wanted: spec,
        why: faults(spec, error.issues) || error.message,
      });
      // A newer wish may be waiting: then the controls are its, not ours to put back.
      const kept = this.served.peek();
      if (this.draft.peek() !== spec || !kept) return;
      // Numbers that came along with a layer that cannot be fit the one on show: they were typed into it.
      const numbers = this.under(spec) && !this.replaces(spec, field) && !sameNumbers(kept.spec, spec);
      const back = numbers ? { ...kept.spec, fills: spec.fills } : kept.spec;
      this.draft.set(back);
      this.stale.set(numbers);
      if (numbers) this.latest.submit((abort) => this.attempt(back, field, abort));
    });
  }
}
